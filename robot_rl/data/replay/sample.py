"""Transitions as they are drawn from replay: views on recorded steps, made when sampling and never stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from robot_rl.data.replay.percept import Images

GRIPPER_MOVE = 0.05
"""Change of a gripper's width, scaled as in the state (unit 4 cm), beyond which it moves."""
LASTING_STEPS = 10
"""A move that is taken back within so many steps is none; exploration makes such, and grasps that fail."""


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
        to_goal: How the pose changes from step t to its goal, see `mark_goals`, (..., pose); NaN where the episode did
            not end in success, or has not ended yet. None of a buffer without a pose.
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


def mark_goals(
    columns: Mapping[str, np.ndarray], first: int, steps: int, success_at: int, width: tuple[int, ...]
) -> None:
    """Write the goals of the steps of an episode, for `way_to_goal`.

    The goal of a step is where the tools are when a gripper next begins to move, or else at the success. So tasks of
    several parts have a goal for each, as where a gripper moves is where something is: a keyframe (James 2022). See
    `lasting_moves`.

    Args:
        columns: Of a `ReplayBuffer`.
        first: Slot of the first step, modulo the capacity.
        steps: Of the episode.
        success_at: Position of the row that the success led to; steps behind it have it as their goal, too.
        width: Elements of the state that are the widths of grippers.
    """
    success_at = min(success_at, steps)
    slots = (first + np.arange(success_at + 1)) % len(columns["state"])
    widths = columns["state"][slots[:, None], np.array(width, int)]
    goals = np.array(sorted({success_at, *(move for one in widths.T for move in lasting_moves(one))}))
    next_goal = np.minimum(np.searchsorted(goals, np.arange(steps)), len(goals) - 1)
    columns["goal_at"][(first + np.arange(steps)) % len(columns["state"])] = goals[next_goal]


def lasting_moves(width: np.ndarray) -> list[int]:
    """Return the positions of the rows in which a gripper begins to move, without moves that are soon taken back.

    The move that takes one back is none, either.

    Args:
        width: Of one gripper in the rows of an episode, scaled as in the state, shape (rows,).
    """
    change = np.diff(width)
    begins = np.abs(change) > GRIPPER_MOVE
    begins[1:] &= ~(begins[:-1] & (change[1:] * change[:-1] > 0))  # nothing begins where the same move goes on
    moves, at = np.flatnonzero(begins).tolist(), 0
    while at + 1 < len(moves):
        move, back = moves[at], moves[at + 1]
        before, between = width[move], width[back]
        after = width[moves[at + 2]] if at + 2 < len(moves) else width[-1]
        if back - move < LASTING_STEPS and abs(after - before) < abs(after - between):
            del moves[at : at + 2]
            at = max(at - 1, 0)  # what was before it may now be taken back by what comes behind it
        else:
            at += 1
    return moves


def way_to_goal(columns: Mapping[str, np.ndarray], slots: np.ndarray, pose: tuple[int, ...]) -> np.ndarray:
    """Return `Sample.to_goal` of the steps in these slots of a ring, whose columns are those of `ReplayBuffer`."""
    where, capacity = np.array(pose), len(columns["state"])
    first = slots - columns["index"][slots]
    goals = (first + columns["goal_at"][slots]) % capacity
    way: np.ndarray = columns["state"][goals[:, None], where] - columns["state"][slots[:, None], where]
    way[columns["success_at"][first % capacity] == 0] = np.nan
    return way
