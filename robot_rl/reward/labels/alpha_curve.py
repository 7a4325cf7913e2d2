"""What scores against goal and baseline (VLM-RM, Rocamonde 2023) would be with any alpha, from the labels alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Page

from robot_rl.errors import DataError
from robot_rl.reward.answer import ALONG, OFFSET
from robot_rl.reward.label_store import Label
from robot_rl.reward.validation.figures import Figure, roc_auc, with_interval
from robot_rl.reward.validation.ground_truth import GroundTruth
from robot_rl.system.atomic_file import writing
from robot_rl.viz.learning_curve import BLACK, BLUE, ORANGE

ALPHAS = tuple(round(0.1 * step, 1) for step in range(11))


@dataclass(frozen=True)
class AlphaPoint:
    """The scores with one alpha, compared with the known outcomes.

    Attributes:
        alpha: In [0, 1].
        auc: ROC-AUC of the last frames' scores, with its 95 % interval over episodes.
        distance: Pearson distance sqrt((1 - rho) / 2) between scores and outcomes (EPIC, Gleave 2021), by which VLM-RM
            compares alphas; 0 is the same, 1 the opposite, NaN where it is not defined.
    """

    alpha: float
    auc: Figure
    distance: float


@dataclass(frozen=True)
class AlphaCurve:
    """All points.

    Attributes:
        episodes: That were compared.
        successes: Of them.
        points: One for each of `ALPHAS`.
    """

    episodes: int
    successes: int
    points: tuple[AlphaPoint, ...]

    @property
    def worse(self) -> list[float]:
        """Each alpha whose ROC-AUC is less than that of alpha 0."""
        return [point.alpha for point in self.points if point.auc.value < self.points[0].auc.value]


def reward_of_offsets(offset: np.ndarray, along: np.ndarray, alpha: float) -> np.ndarray:
    """Return R = 1 - 1/2 |P_alpha (x - g)|^2 = 1 - 1/2 ((1 - (1 - alpha)^2) along + (1 - alpha)^2 offset).

    Args:
        offset: |x - g|^2, shape (N,).
        along: Its part along the line from baseline to goal, shape (N,).
        alpha: In [0, 1].
    """
    rest = (1.0 - alpha) ** 2
    reward: np.ndarray = 1.0 - 0.5 * ((1.0 - rest) * along + rest * offset)
    return reward


def alpha_curve(labels: Sequence[Label], truth: Mapping[str, GroundTruth]) -> AlphaCurve:
    """Return the curve over the episodes of known outcome, by their last frames.

    Args:
        labels: Scores against a goal and a baseline.
        truth: By episode id.

    Raises:
        DataError: if the labels were made without a baseline, or there are no successes or no failures.
    """
    outcomes, offsets, along = [], [], []
    for label in labels:
        known = truth.get(str(label.subject[0]["episode_id"]))
        if known is None or known.success is None or not label.answer.values:
            continue
        if OFFSET not in label.answer.details:
            raise DataError("these scores were made without a baseline, so alpha does nothing; set score.baselines")
        outcomes.append(known.success)
        offsets.append(label.answer.details[OFFSET][-1])
        along.append(label.answer.details[ALONG][-1])
    happened = np.array(outcomes, bool)
    if not happened.any() or happened.all():
        good = int(happened.sum())
        raise DataError(f"{good} successes and {len(happened) - good} failures of known outcome; a curve needs both")
    points = []
    for alpha in ALPHAS:
        score = reward_of_offsets(np.array(offsets), np.array(along), alpha)
        auc = with_interval(lambda at, score=score: roc_auc(happened[at], score[at]), len(score))  # type: ignore[misc]
        points.append(AlphaPoint(alpha, auc, _pearson_distance(score, happened)))
    return AlphaCurve(len(happened), int(happened.sum()), tuple(points))


def draw_alpha_curve(curve: AlphaCurve, used: float, path: Path) -> None:
    """Write the curve as PNG.

    Args:
        curve: The curve.
        used: Alpha of the labels, which is marked.
        path: Of the new file.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    page = Page(figsize=(6, 4.2), layout="constrained")
    axes, alphas = page.subplots(), [point.alpha for point in curve.points]
    axes.plot(alphas, [point.auc.value for point in curve.points], color=BLUE, label="ROC-AUC")
    low, high = [point.auc.low for point in curve.points], [point.auc.high for point in curve.points]
    axes.fill_between(alphas, low, high, color=BLUE, alpha=0.2, label="95 % interval")
    axes.plot(alphas, [p.distance for p in curve.points], color=ORANGE, label="Pearson distance to the outcomes")
    axes.axvline(used, color=BLACK, linestyle=":", label=f"alpha of the labels, {used:g}")
    axes.set_xlabel("alpha")
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, fontsize=8)
    axes.set_title(f"Scores of the last frames of {curve.episodes} episodes", fontsize=11, loc="left")
    FigureCanvasAgg(page)
    with writing(path):
        page.savefig(path, dpi=100, format="png")


def _pearson_distance(score: np.ndarray, happened: np.ndarray) -> float:
    if np.ptp(score) == 0:
        return math.nan
    rho = float(np.corrcoef(score, happened.astype(float))[0, 1])
    return math.sqrt(max(0.0, (1.0 - rho) / 2.0))
