"""Comparison of labellers on the episodes that all of them labelled: which is better, and do they agree?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from robot_rl.errors import DataError
from robot_rl.reward.label_store import Label
from robot_rl.reward.validation import figures
from robot_rl.reward.validation.figures import Figure, with_interval
from robot_rl.reward.validation.ground_truth import GroundTruth
from robot_rl.reward.validation.probability_calibration import UNCALIBRATED_THRESHOLD, Calibration
from robot_rl.reward.validation.report import success_columns


@dataclass(frozen=True)
class Comparison:
    """Labels of success of several labellers.

    Attributes:
        episodes: How many all of them labelled.
        auc: ROC-AUC of each.
        difference: Of each other labeller's AUC to the first one's, on the same resampled episodes.
        kappa: Agreement of each other labeller's successes with the first one's, beyond chance.
    """

    episodes: int
    auc: Mapping[str, Figure]
    difference: Mapping[str, Figure]
    kappa: Mapping[str, float]


def compare_success(
    labels: Mapping[str, Sequence[Label]],
    truth: Mapping[str, GroundTruth],
    calibrations: Mapping[str, Calibration],
    trained_on: Sequence[str] = (),
) -> Comparison:
    """Compare labellers of success.

    Args:
        labels: By name, the first one the one that the others are compared with.
        truth: By episode id.
        calibrations: By name, where there is one; the episodes of all of them are left out.
        trained_on: Episodes that any of the labellers was trained on; they are left out, too.

    Raises:
        DataError: if fewer than two labellers are given, or they share no episodes.
    """
    if len(labels) < 2:
        raise DataError("name at least two sets of labels to compare")
    without = [*trained_on, *(name for calibration in calibrations.values() for name in calibration.fitted_to)]
    columns = {name: success_columns(rows, truth, without) for name, rows in labels.items()}
    readable = [{e for e, p in zip(c.episodes, c.probability, strict=True) if np.isfinite(p)} for c in columns.values()]
    shared = sorted(set.intersection(*readable))
    if not shared:
        raise DataError(f"the labels {', '.join(labels)} share no episode whose outcome is known")
    happened = np.array([truth[name].success for name in shared], bool)
    scores, positive = {}, {}
    for name, column in columns.items():
        place = {episode: number for number, episode in enumerate(column.episodes)}
        scores[name] = column.probability[[place[episode] for episode in shared]]
        known = calibrations.get(name)
        positive[name] = known(scores[name]) >= known.threshold if known else scores[name] >= UNCALIBRATED_THRESHOLD
    first, *others = labels

    def auc(name: str) -> Callable[[np.ndarray], float]:
        return lambda index: figures.roc_auc(happened[index], scores[name][index])

    def gain(name: str) -> Callable[[np.ndarray], float]:
        return lambda index: auc(name)(index) - auc(first)(index)

    return Comparison(
        len(shared),
        {name: with_interval(auc(name), len(shared)) for name in labels},
        {name: with_interval(gain(name), len(shared)) for name in others},
        {name: figures.kappa(positive[first], positive[name]) for name in others},
    )
