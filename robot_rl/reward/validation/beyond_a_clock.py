"""Whether progress tells successes from failures better than time alone can."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from robot_rl.reward.validation.figures import Figure, with_interval
from robot_rl.statistics import wilson_interval


def beyond_a_clock(success: np.ndarray, rows: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> Figure:
    """Return the chance that a success has more progress than a failure, ties count half; a clock has 0.5 at most.

    It is the lower of two chances: after the same number of steps, the last one of the shorter episode, where every
    function of the elapsed time is tied; and at the ends, where every function of the elapsed share of an episode is
    tied. So an episode's length alone, by which a clock may tell successes that end early, gains nothing. The interval
    is by resampling episodes, and no narrower from below than Wilson's for pairs that share no episode. NaN without
    successes or failures.

    Args:
        success: Whether each episode succeeded, shape (n,), bool.
        rows: Of each episode, the steps of its values, increasing.
        values: Of each episode, its progress at these steps.
    """
    last = np.array([steps[-1] for steps in rows], float)
    end = np.array([progress[-1] for progress in values], float)
    then = np.array(
        [np.interp(np.minimum(last, own), r, v) for own, r, v in zip(last, rows, values, strict=True)]
    )  # [i, j]: of episode i, when the shorter one of i and j ends
    orders = [_order(then, then.T), _order(end[:, None], end[None, :])]

    def chance(drawn: np.ndarray) -> float:
        pairs = np.ix_(drawn[success[drawn]], drawn[~success[drawn]])
        return min(float(order[pairs].mean()) for order in orders) if orders[0][pairs].size else math.nan

    found, count = with_interval(chance, len(success)), int(min(success.sum(), (~success).sum()))
    if not count:
        return found
    return found._replace(low=min(found.low, wilson_interval(math.floor(found.value * count), count)[0]))


def _order(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return 1 where one is larger than the other, 0.5 where they are tied but for rounding, and 0 elsewhere."""
    tied = np.isclose(one, other, rtol=0.0, atol=1e-9)
    order: np.ndarray = np.where(tied, 0.5, one > other)
    return order
