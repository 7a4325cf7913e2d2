"""Calibration of probabilities (Platt 1999), and the choice of the threshold of a success."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from robot_rl.errors import DataError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.validation.threshold import choose_threshold
from robot_rl.system.atomic_file import write_atomically

FEWEST = 10
"""Least successes, and least failures, that a calibration is fitted to."""
UNCALIBRATED_THRESHOLD = 0.5
_EDGE = 1e-6
MOST_STEPS = 100
"""Of Newton's method."""


@dataclass(frozen=True)
class Calibration:
    """p' = sigmoid(slope logit(p) + offset) (Platt 1999), and from which p' on an episode counts as a success.

    Attributes:
        labels: Name of the labels that it was fitted to.
        slope: Below 1 for a model that is too sure of itself.
        offset: Above 0 for one that is too strict.
        threshold: Of p'.
        fitted_to: Episodes that it was fitted to; a report leaves them out.
        successes: How many of them were successes.
    """

    labels: str
    slope: float
    offset: float
    threshold: float
    fitted_to: tuple[str, ...]
    successes: int

    def __call__(self, probability: np.ndarray) -> np.ndarray:
        """Return calibrated probabilities, of the shape of those given."""
        return sigmoid(self.slope * _logit(probability) + self.offset)

    def write(self, path: Path) -> None:
        """Write the calibration to a JSON file.

        Raises:
            RunDirectoryError: if that cannot be done.
        """
        write_atomically(path, json.dumps(asdict(self), indent=2))


def counts_as_success(probability: float, calibration: Calibration | None) -> bool:
    """Return whether a model's probability reaches the threshold, which is 0.5 without a calibration."""
    if calibration is None:
        return probability >= UNCALIBRATED_THRESHOLD
    return bool(calibration(np.array(probability)) >= calibration.threshold)


def labelled_success(answer: Answer, calibration: Calibration | None) -> bool | None:
    """Return whether an answer labels its episode a success; None if it has no value, which is never a success."""
    return counts_as_success(answer.values[0], calibration) if answer.status is Status.OK else None


def read_calibration(path: Path) -> Calibration:
    """Read what `Calibration.write` wrote.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    try:
        return TypeAdapter(Calibration).validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{path}: no calibration there; `robot-rl label calibrate` makes one") from error
    except (OSError, ValidationError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def calibrate(
    labels: str, episodes: tuple[str, ...], truth: np.ndarray, probability: np.ndarray, *, max_false_positives: float
) -> Calibration:
    """Fit slope and offset by maximum likelihood, with Platt's smoothed targets, and choose the threshold.

    `choose_threshold` places the threshold.

    Args:
        labels: Name of the labels.
        episodes: Ids, n of them.
        truth: Whether each succeeded, shape (n,), bool.
        probability: From the model, shape (n,).
        max_false_positives: Share of the failures, in [0, 1).

    Raises:
        DataError: if there are too few successes or failures.
    """
    positives, negatives = int(truth.sum()), int((~truth).sum())
    if min(positives, negatives) < FEWEST:
        raise DataError(
            f"{positives} successes and {negatives} failures are too few to calibrate; label at least {FEWEST} of each "
            "whose outcome is known"
        )
    slope, offset = fit_logistic(_logit(probability)[:, None], truth).tolist()
    threshold = choose_threshold(probability, truth, max_false_positives, lambda p: sigmoid(slope * _logit(p) + offset))
    return Calibration(labels, slope, offset, threshold, episodes, positives)


def fit_logistic(x: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Fit sigmoid(slopes x + offset) by maximum likelihood, with Newton's method.

    Args:
        x: Shape (n, k).
        truth: Shape (n,), bool.

    Returns:
        The k slopes, and the offset.
    """
    order = np.lexsort([truth, *x.T])  # sums round alike in any order of the cases, and thresholds far out enlarge that
    x, truth = x[order], truth[order]
    positives, negatives = truth.sum(), (~truth).sum()
    # Platt (1999): targets that a finite number of cases justifies, so that separable data give a finite slope
    target = np.where(truth, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    design = np.concatenate([x, np.ones((len(x), 1))], 1)
    mean = target.mean()
    starts = (np.append(np.full(x.shape[1], 1.0 / x.shape[1]), 0.0), np.append(np.zeros(x.shape[1]), _logit(mean)))
    weights = min(starts, key=lambda start: _cross_entropy(design @ start, target))
    loss = _cross_entropy(design @ weights, target)
    for _ in range(MOST_STEPS):
        p = sigmoid(design @ weights)
        gradient = design.T @ (p - target)
        curvature = design.T @ (design * (p * (1 - p))[:, None]) + 1e-9 * np.eye(len(weights))
        step = np.linalg.solve(curvature, gradient)
        largest = np.abs(step).max()
        step *= min(1.0, 2.0 / largest if largest > 0 else 1.0)
        while (after := _cross_entropy(design @ (weights - step), target)) > loss + 1e-9 * (1.0 + loss):
            step /= 2  # where the curvature is almost 0 a full step overshoots, and the next one would come back
        weights, loss = weights - step, after
        if largest < 1e-9:
            break
    return weights


def _cross_entropy(logits: np.ndarray, target: np.ndarray) -> float:
    """Return the sum of -t log sigmoid(z) - (1 - t) log sigmoid(-z), without overflow."""
    return float((np.logaddexp(0.0, logits) - target * logits).sum())


def _logit(p: np.ndarray) -> np.ndarray:
    p = np.clip(np.asarray(p, float), _EDGE, 1 - _EDGE)
    return np.log(p) - np.log1p(-p)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))
