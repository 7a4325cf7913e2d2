"""The threshold of a success: how it is chosen, and what every other one would give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

LEAST_THRESHOLD = 0.5
"""Nothing that is more probably a failure counts as a success, however well the known episodes are separated."""
MAX_FALSE_POSITIVES = 0.001
"""Default share of the failures that may count as a success where the threshold is chosen.

It is a tenth of what the gate allows. A threshold that lets through just what the gate allows could not pass it,
because the gate counts the worse end of an interval.
"""
LEAST_MARGIN = 1e-6
"""Between a failure and the threshold above it, where no episode lies higher [probability]."""
DRAWN_AT = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Thresholds of a curve, besides the chosen one."""


class CurvePoint(NamedTuple):
    """What a threshold gives on the known episodes.

    Attributes:
        threshold: Of the calibrated probability.
        false_positives: Failures that reach it.
        failures: All of them.
        found: Successes that reach it.
        successes: All of them.
    """

    threshold: float
    false_positives: int
    failures: int
    found: int
    successes: int


def least_threshold(failures: np.ndarray, max_false_positives: float) -> float:
    """Return the least threshold that no more than this share of the failures, by their scores, reaches."""
    allowed = allowed_failures(len(failures), max_false_positives)
    return float(np.nextafter(np.sort(failures)[::-1][allowed], 2.0))  # just above the first that may not pass


def allowed_failures(failures: int, max_false_positives: float) -> int:
    """Return how many of the failures may count as a success."""
    return int(max_false_positives * failures)


def choose_threshold(
    probability: np.ndarray,
    truth: np.ndarray,
    max_false_positives: float,
    calibrated: Callable[[np.ndarray], np.ndarray],
) -> float:
    """Return the threshold of the calibrated probability from which an episode counts as a success.

    It lies as far from the known episodes as it can: in the middle between the highest failure that may not pass and
    the next episode above it. The middle is that of the model's own probabilities, not of their log-odds, which are
    arbitrary near 0 and 1: between a failure with 0.000001 and a success with 0.9 it is 0.45, not 0.003. Without an
    episode above, the other side is certainty. The threshold is at least `LEAST_THRESHOLD`.

    Args:
        probability: From the model, shape (n,).
        truth: Whether each succeeded, shape (n,), bool; at least one did not.
        max_false_positives: Share of the failures that may reach it, in [0, 1).
        calibrated: Makes calibrated probabilities of the model's.
    """
    score = calibrated(probability)
    least = least_threshold(score[~truth], max_false_positives)
    below, above = score < least, score >= least
    refused = score[below].max()
    beside = probability[below & (score == refused)].max()  # of several, as those near 0 and 1 are scored alike
    if above.any():
        passed = score[above].min()
        middle = calibrated(np.array((beside + probability[above & (score == passed)].min()) / 2))
        threshold = float(np.clip(middle, least, passed))
    else:
        middle = calibrated(np.array((beside + 1.0) / 2))
        threshold = max(float(middle), float(refused) + LEAST_MARGIN)
    return max(LEAST_THRESHOLD, threshold)


def threshold_curve(score: np.ndarray, truth: np.ndarray, thresholds: Sequence[float]) -> tuple[CurvePoint, ...]:
    """Return what each threshold gives, in rising order.

    Args:
        score: Calibrated probabilities, shape (n,).
        truth: Whether each succeeded, shape (n,), bool.
        thresholds: In any order; equal ones count once.
    """
    failures, successes = score[~truth], score[truth]
    return tuple(
        CurvePoint(one, int((failures >= one).sum()), len(failures), int((successes >= one).sum()), len(successes))
        for one in sorted(set(thresholds))
    )
