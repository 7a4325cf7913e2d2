"""reward = f(environment, label, settings): pure functions, so that other settings cost no new label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_rl.data.shaping import shaping_term


def potential_between(rows: Sequence[int], values: Sequence[float], steps: int) -> np.ndarray:
    """Interpolate progress linearly between the observations that have a label; shape (steps + 1,).

    Args:
        rows: Observations with a label, ascending.
        values: Progress there, in [0, 1].
        steps: Of the episode.
    """
    return np.interp(np.arange(steps + 1), rows, values)


def shaped_reward(reward: np.ndarray, potential: np.ndarray, terminated: bool, discount: float) -> np.ndarray:
    """Return R + gamma Phi(s') - Phi(s), which leaves the best policy as it is (Ng 1999); shape (T,), float32.

    Where nothing follows, Phi(s') is 0: else ending the episode would be paid for by itself.

    Args:
        reward: Of the environment, or of labels of success, shape (T,).
        potential: Phi at each observation, shape (T + 1,).
        terminated: Whether the episode ended in its last step.
        discount: gamma, as in learning.
    """
    discounts = np.full(len(reward), discount)
    if terminated:
        discounts[-1] = 0.0
    return (reward + shaping_term(discounts, potential[:-1], potential[1:])).astype(np.float32)
