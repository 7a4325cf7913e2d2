"""Figures of labels and classifiers: pure functions of truth and score, and intervals by resampling episodes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from robot_rl.statistics import wilson_interval


class Figure(NamedTuple):
    """A number and its 95 % interval; NaN where it is undefined, e.g. a precision without positives."""

    value: float
    low: float
    high: float


def roc_auc(truth: np.ndarray, score: np.ndarray) -> float:
    """Return the chance that a success scores above a failure, ties count half (Mann, Whitney 1947); NaN without both.

    Args:
        truth: Whether each succeeded, shape (n,), bool.
        score: Larger for more likely, shape (n,).
    """
    positives = int(truth.sum())
    negatives = len(truth) - positives
    if not positives or not negatives or np.isnan(score).any():
        return math.nan
    _, place, ties = np.unique(score, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - 0.5 * (ties - 1))[place]  # of equal scores, the mean of theirs
    return float((ranks[truth].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def average_precision(truth: np.ndarray, score: np.ndarray) -> float:
    """Return the area under the precision-recall curve: mean precision at the scores of successes; NaN without one."""
    if not truth.any():
        return math.nan
    of_all = len(score) - np.searchsorted(np.sort(score), score[truth], side="left")  # how many score at least as high
    of_successes = truth.sum() - np.searchsorted(np.sort(score[truth]), score[truth], side="left")
    return float((of_successes / of_all).mean())


def precision(truth: np.ndarray, positive: np.ndarray) -> float:
    """Return the share of the predicted successes that are one; NaN if nothing was predicted one."""
    return float(truth[positive].mean()) if positive.any() else math.nan


def recall(truth: np.ndarray, positive: np.ndarray) -> float:
    """Return the share of the successes that were predicted one; NaN if there are none."""
    return float(positive[truth].mean()) if truth.any() else math.nan


def false_positive_rate(truth: np.ndarray, positive: np.ndarray) -> float:
    """Return the share of the failures that were predicted a success; NaN if there are none."""
    return float(positive[~truth].mean()) if not truth.all() else math.nan


def calibration_error(truth: np.ndarray, probability: np.ndarray, bins: int = 10) -> float:
    """Return the expected calibration error: mean gap of probability and frequency over equal bins (Naeini 2015)."""
    if not len(truth):
        return math.nan
    place = np.minimum((probability * bins).astype(int), bins - 1)
    gaps = [abs(truth[place == b].mean() - probability[place == b].mean()) * (place == b).mean() for b in set(place)]
    return float(sum(gaps))


def brier(truth: np.ndarray, probability: np.ndarray) -> float:
    """Return the mean squared distance of the probability from the outcome (Brier 1950)."""
    return float(np.square(probability - truth).mean()) if len(truth) else math.nan


def value_order_correlation(values: np.ndarray) -> float:
    """Return VOC, the Spearman correlation of the values with their order in time (Ma 2024); 0 for constant ones.

    A clock has 1, so VOC is no measure of success.
    """
    if len(values) < 2 or np.ptp(values) == 0:
        return 0.0
    from scipy.stats import spearmanr  # here, as it takes a second to import, and every training reads this file

    return float(spearmanr(values, np.arange(len(values))).statistic)


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Return the Spearman correlation; 0 if either is constant."""
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    from scipy.stats import spearmanr

    return float(spearmanr(one, other).statistic)


def order_agreement(grade: np.ndarray, value: np.ndarray) -> float:
    """Return Kendall tau-b of values with grades; NaN if there is one grade only."""
    from scipy.stats import kendalltau

    return float(kendalltau(grade, value).statistic) if len(set(grade.tolist())) > 1 else math.nan


def kappa(one: np.ndarray, other: np.ndarray) -> float:
    """Return the agreement of two raters beyond chance (Cohen 1960); NaN if chance alone would always agree."""
    agreed, p, q = float((one == other).mean()), float(one.mean()), float(other.mean())
    chance = p * q + (1 - p) * (1 - q)
    return (agreed - chance) / (1 - chance) if chance < 1 else math.nan


def with_interval(
    statistic: Callable[[np.ndarray], float], count: int, *, resamples: int = 1000, seed: int = 0
) -> Figure:
    """Compute a figure and its 95 % percentile interval, resampling whole episodes.

    Frames of one episode are not independent of each other.

    Args:
        statistic: Of the episodes at the given indices; NaN where it is undefined.
        count: Number of episodes.
        resamples: How many draws; those without a value are left out.
        seed: The same seed gives the same interval.
    """
    if count == 0:
        return Figure(math.nan, math.nan, math.nan)
    value = statistic(np.arange(count))
    draws = np.random.default_rng(seed).integers(count, size=(resamples, count))
    drawn = np.array([statistic(draw) for draw in draws])
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn) or math.isnan(value):
        return Figure(value, math.nan, math.nan)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Figure(value, float(low), float(high))


def share(count: int, total: int) -> Figure:
    """Return a share of independent cases with its Wilson interval, which is no point at 0 and 1."""
    if total == 0:
        return Figure(math.nan, math.nan, math.nan)
    return Figure(count / total, *wilson_interval(count, total))
