"""Confidence intervals, for success rates and for means over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist

import numpy as np


def mean(values: Iterable[float]) -> float:
    """Return the mean of an iterable of numbers."""
    return float(np.mean(list(values)))


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the score interval of a success rate (Wilson 1927, JASA 22, p. 209); it holds its level near 0 and 1.

    (p + z^2/2n -+ z sqrt(p (1 - p)/n + z^2/4n^2)) / (1 + z^2/n), with z the normal quantile of (1 + confidence)/2.

    Args:
        successes: Trials that succeeded.
        n: Trials; none give (0, 1), which is to know nothing.
        confidence: Level, in (0, 1).

    Raises:
        ValueError: if `successes` is not in [0, n] or `confidence` not in (0, 1).
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials")
    z = _normal_quantile(confidence)
    if n == 0:
        return 0.0, 1.0
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == n else (centre + half) / scale
    return low, high


def faultless_trials(rate: float, confidence: float = 0.95) -> int:
    """Return how many trials without a fault show, by Wilson's interval, that faults are no more than a rate.

    The upper end for 0 of n is z^2 / (n + z^2), solved for n.

    Args:
        rate: Of faults, in (0, 1).
        confidence: Level, in (0, 1).

    Raises:
        ValueError: if `rate` or `confidence` is not in (0, 1).
    """
    if not 0 < rate < 1:
        raise ValueError(f"rate {rate} is not between 0 and 1")
    return math.ceil(_normal_quantile(confidence) ** 2 * (1 - rate) / rate)


def interquartile_mean(values: Sequence[float] | np.ndarray) -> float:
    """Return the mean of the middle half: without a quarter of the values, rounded down, at each end (Agarwal 2021).

    Raises:
        ValueError: if there are no values.
    """
    ordered = np.sort(np.asarray(values, dtype=float), axis=None)
    if not ordered.size:
        raise ValueError("the interquartile mean of no values")
    cut = ordered.size // 4
    return float(ordered[cut : ordered.size - cut].mean())


def bootstrap_interval(
    strata: Sequence[Sequence[float] | np.ndarray],
    statistic: Callable[[np.ndarray], float] = interquartile_mean,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a percentile interval of a statistic by the stratified bootstrap.

    The method is that of Agarwal 2021, "Statistical Precipice", sec. 4.
    Seeds are drawn again with replacement within each stratum (task), so every resample holds each task as often as
    the data does.

    Args:
        strata: Results by task, one per seed.
        statistic: What to estimate, of all values together.
        confidence: Level, in (0, 1).
        resamples: Number of draws.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: if a stratum is empty or `confidence` not in (0, 1).
    """
    arrays = [np.asarray(stratum, dtype=float) for stratum in strata]
    if not arrays or any(array.size == 0 for array in arrays):
        raise ValueError("a bootstrap needs at least one value in each stratum")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")
    rng = np.random.default_rng(seed)
    drawn = np.concatenate([array[rng.integers(array.size, size=(resamples, array.size))] for array in arrays], axis=1)
    estimates = [statistic(row) for row in drawn]
    tail = (1 - confidence) / 2
    low, high = np.quantile(estimates, [tail, 1 - tail])
    return float(low), float(high)


def _normal_quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} is not between 0 and 1")
    return NormalDist().inv_cdf((1 + confidence) / 2)
