"""Transitions as they are drawn from replay: views on recorded steps, made when sampling and never stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from robot_rl.data.replay.percept import Images


class Sample(NamedTuple):
    """Transitions for learning, float32. A batch dimension (count,) or (minibatches, batch size) comes first.

    Attributes:
        observation: Packed observations at step t - age for each of the H ages of the history, (..., H * state_size).
        action: Executed at step t, (..., action_size); of a buffer with chunks those of h steps, (..., chunk.size).
        reward: Sum of `discount ** k * reward[t + k]` over the m <= n_step steps of the window, (...), and of a buffer
            that shapes rewards what shaping adds.
        discount: `discount ** m`, or 0 where the window ended in termination, (...).
        next_observation: As `observation`, at step t + m.
        images: What networks see at step t, one random crop of each camera, (..., *view_shape); None without images.
        next_images: As `images`, at step t + m.
        to_goal: How the pose changed from step t to the end of its episode, (..., pose); NaN where the episode did not
            end in success, or has not ended yet. None of a buffer without a pose.
        simulated: 1 where the step was taken over from another run, else 0, (...). None of a buffer that does not tell.
        following: As `observation`, at step t + 1. None with `simulated`.
        demonstrated: How many of the row's actions, from its first one on, count as demonstrated, also as a correction:
            0 or 1, of a buffer with chunks up to h, (...). None if rows are not marked.
        corrected: 1 where it is a correction that counts as a demonstration, else 0, (...). None with `demonstrated`.
    """

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    discount: np.ndarray
    next_observation: np.ndarray
    images: Images | None = None
    next_images: Images | None = None
    to_goal: np.ndarray | None = None
    simulated: np.ndarray | None = None
    following: np.ndarray | None = None
    demonstrated: np.ndarray | None = None
    corrected: np.ndarray | None = None


def way_to_success(columns: Mapping[str, np.ndarray], slots: np.ndarray, pose: tuple[int, int]) -> np.ndarray:
    """Return `Sample.to_goal` of the steps in these slots of a ring, whose columns are those of `ReplayBuffer`."""
    where, capacity = slice(*pose), len(columns["state"])
    first = slots - columns["index"][slots]
    steps = columns["success_at"][first % capacity]
    way: np.ndarray = columns["state"][(first + steps) % capacity, where] - columns["state"][slots, where]
    way[steps == 0] = np.nan
    return way
