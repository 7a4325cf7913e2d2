"""How well a rule predicts failure: precision and recall, of a threshold from other episodes or of a given one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_rl.errors import DataError
from robot_rl.statistics import wilson_interval

LEAST = 4
"""Fewest successes, and fewest failures, in each half of the episodes."""


@dataclass(frozen=True, eq=False)
class Played:
    """An episode that the policy led alone.

    Attributes:
        risk: After each step, shape (T,).
        success: Whether it succeeded.
    """

    risk: np.ndarray
    success: bool

    def in_time(self, lead: int) -> np.ndarray:
        """Return the risk after each step but the last `lead` ones, in which a call would come too late."""
        return self.risk[: max(len(self.risk) - lead, 0)]

    def alarm(self, threshold: float, lead: int) -> int | None:
        """Return the first step in time whose risk reaches a threshold; None if none does."""
        over = np.flatnonzero(self.in_time(lead) >= threshold)
        return int(over[0]) if len(over) else None


@dataclass(frozen=True)
class RuleQuality:
    """A rule with its threshold, judged on episodes.

    Attributes:
        threshold: Risk from which on a person is called; None if none is precise enough.
        precision: Share of the calls in episodes that failed; None without calls.
        precision_ci95: Its Wilson interval.
        recall: Share of the failures that were called in time; None without failures.
        recall_ci95: Its Wilson interval.
        calls: In these episodes.
        false_calls_per_hour: In episodes that would have succeeded, by the hour of robot time.
        saved_s: Median time from a rightful call to the end of the episode [s]; None without any.
        episodes: That judge it.
        failures: Among these.
    """

    threshold: float | None
    precision: float | None
    precision_ci95: tuple[float, float]
    recall: float | None
    recall_ci95: tuple[float, float]
    calls: int
    false_calls_per_hour: float
    saved_s: float | None
    episodes: int
    failures: int


def calibrate(played: Sequence[Played], *, precision: float, lead_s: float, control_period: float) -> RuleQuality:
    """Set a threshold with every other episode, and judge it on the rest.

    Args:
        played: The episodes.
        precision: Least share of rightful calls, among the episodes that set the threshold; of all thresholds that
            reach it, that with the largest recall is taken.
        lead_s: A call that comes later than this before the end of its episode is none [s].
        control_period: Time between two steps [s].

    Raises:
        DataError: if there are too few successes or failures.
    """
    lead = round(lead_s / control_period)
    first, rest = _halves(played)
    return judge(rest, _threshold(first, precision, lead), lead_s=lead_s, control_period=control_period)


def judge(judged: Sequence[Played], threshold: float | None, *, lead_s: float, control_period: float) -> RuleQuality:
    """Return how well a rule with this threshold, or none, predicts failure in these episodes; see `calibrate`."""
    lead = round(lead_s / control_period)
    alarms = [None if threshold is None else one.alarm(threshold, lead) for one in judged]
    right = [(one, at) for one, at in zip(judged, alarms, strict=True) if at is not None and not one.success]
    calls = sum(at is not None for at in alarms)
    failures = sum(not one.success for one in judged)
    hours = sum(len(one.risk) for one in judged) * control_period / 3600.0
    return RuleQuality(
        threshold=threshold,
        precision=len(right) / calls if calls else None,
        precision_ci95=wilson_interval(len(right), calls),
        recall=len(right) / failures if failures else None,
        recall_ci95=wilson_interval(len(right), failures),
        calls=calls,
        false_calls_per_hour=(calls - len(right)) / hours,
        saved_s=float(np.median([len(one.risk) - 1 - at for one, at in right])) * control_period if right else None,
        episodes=len(judged),
        failures=failures,
    )


def _halves(played: Sequence[Played]) -> tuple[list[Played], list[Played]]:
    """Return every other success and every other failure, and the rest, so that both halves have as many of each."""
    halves: tuple[list[Played], list[Played]] = ([], [])
    for success in (True, False):
        of_kind = [one for one in played if one.success is success]
        if len(of_kind) < 2 * LEAST:
            kind = "successes" if success else "failures"
            raise DataError(
                f"there are {len(of_kind)} {kind} among {len(played)} episodes without help; at least {2 * LEAST} are "
                "needed to calibrate and to judge: record more, e.g. robot-rl eval RUN --episodes 300 --record STORE"
            )
        for number, one in enumerate(of_kind):
            halves[number % 2].append(one)
    return halves


def _threshold(played: Sequence[Played], precision: float, lead: int) -> float | None:
    """Return the threshold with the largest recall of those that are precise enough, the larger of equal ones."""
    best: tuple[int, float] | None = None
    highest = [(one, one.in_time(lead).max(initial=-np.inf)) for one in played]
    for threshold in sorted({float(risk) for _, risk in highest if np.isfinite(risk)}):
        called = [one for one, risk in highest if risk >= threshold]
        right = sum(not one.success for one in called)
        if right and right >= precision * len(called) and (best is None or (right, threshold) >= best):
            best = right, threshold
    return None if best is None else best[1]
