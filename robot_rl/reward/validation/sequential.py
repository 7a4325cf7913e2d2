"""A sequential test of a rate of faults: it may be read after every episode, and its error level still holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from robot_rl.reward.validation.gates import ConditionResult, Fitness, GateResult

LEVEL = 0.05
"""Chance, over all readings together, that a rate of faults that is too high is called fit; and likewise that one that
is low enough is called unfit."""
SPREAD = 4.0
"""The rates of faults that the test expects of a good labeller have a mean of the bound divided by this."""
USE = "ending episodes, by the sequential test"
BOUNDS: Mapping[str, float] = {
    "failures called a success": 0.01,
    "near misses called a success": 0.05,
    "false among the called successes": 0.02,
    "successes missed": 0.20,
    "pairs of a success and a failure in the wrong order": 0.02,
}
"""Highest rate of each fault; those of the gate for a sparse reward. Of pairs, 1 - rate is the ROC-AUC."""


class Trials(NamedTuple):
    """Episodes, or pairs of them, that are independent of each other.

    Attributes:
        faults: How many of them are faults.
        total: All of them.
    """

    faults: int
    total: int


def trials_of_success(
    truth: np.ndarray, near: np.ndarray, probability: np.ndarray, positive: np.ndarray
) -> dict[str, Trials]:
    """Count the faults of labels of success.

    The n-th success and the n-th failure are a pair, so that no episode is in two of them. A tie is a fault.

    Args:
        truth: Whether each episode succeeded, shape (n,), bool.
        near: Whether it failed narrowly, shape (n,), bool.
        probability: From the labels, shape (n,).
        positive: Whether it counts as a success, shape (n,), bool.
    """

    def count(faults: np.ndarray, among: np.ndarray) -> Trials:
        return Trials(int((faults & among).sum()), int(among.sum()))

    pairs = min(int(truth.sum()), int((~truth).sum()))
    wrong = probability[truth][:pairs] <= probability[~truth][:pairs]
    found = (
        count(positive, ~truth),
        count(positive, near & ~truth),
        count(~truth, positive),
        count(~positive, truth),
        Trials(int(wrong.sum()), pairs),
    )
    return dict(zip(BOUNDS, found, strict=True))


def log_evidence(trials: Trials, rate: float) -> float:
    """Return the log of the evidence against "faults have this rate"; it exceeds log(1/level) with a chance of level.

    The likelihood of the trials, mixed over a Beta(1, SPREAD / rate) distribution of rates, divided by that of the
    rate. Under the rate it is a martingale of mean 1, so by Ville's inequality the chance that it ever reaches
    1 / level is at most level, however often it is read (Robbins 1970, Ann. Math. Stat. 41, p. 1397).

    Args:
        trials: The trials so far.
        rate: In (0, 1).
    """
    from scipy.special import betaln  # here, as it takes long to import, and every training reads this file

    faults, total = trials
    mixed = betaln(1 + faults, SPREAD / rate + total - faults) - betaln(1, SPREAD / rate)
    return float(mixed - faults * math.log(rate) - (total - faults) * math.log1p(-rate))


def log_evidence_above(trials: Trials, rate: float) -> float:
    """Return the log of the evidence against "faults have at most this rate"; it exceeds log(1/level) as rarely.

    The likelihood of the trials, mixed over a uniform distribution of all higher rates, divided by that of the rate.
    Under the rate it is a martingale of mean 1, and under lower ones a supermartingale, as each fault is more probable
    under every higher rate. So here nothing is expected of an unfit labeller, and few trials show it.

    Args:
        trials: The trials so far.
        rate: In (0, 1).
    """
    from scipy.special import betaincc, betaln

    faults, total = trials
    shape = 1 + faults, 1 + total - faults
    above = float(betaincc(*shape, rate))
    mixed = betaln(*shape) + (math.log(above) if above > 0.0 else -math.inf) - math.log1p(-rate)
    return float(mixed - faults * math.log(rate) - (total - faults) * math.log1p(-rate))


def judge(trials: Trials, bound: float, level: float = LEVEL) -> Fitness:
    """Return whether the rate of faults is shown to be below the bound, shown to be above it, or neither.

    Where the share of faults is below the bound, evidence against the bound excludes every higher rate, too: the
    likelihood falls beyond the share.

    Args:
        trials: The trials so far.
        bound: Highest rate of faults, in (0, 1).
        level: Chance of a wrong verdict, in (0, 1).
    """
    enough = -math.log(level)
    if trials.faults < bound * trials.total and log_evidence(trials, bound) >= enough:
        return Fitness.FIT
    return Fitness.UNFIT if log_evidence_above(trials, bound) >= enough else Fitness.NOT_SHOWN


def faultless_needed(bound: float, level: float = LEVEL) -> int:
    """Return the least number of trials that shows a rate below the bound, if none of them is a fault."""
    count = 1
    while judge(Trials(0, count), bound, level) is not Fitness.FIT:
        count += 1
    return count


def check_sequentially(trials: Mapping[str, Trials]) -> GateResult:
    """Return whether the labels are fit to end episodes, at any moment of the test.

    All bounds must be shown to hold, so the chance that unfit labels pass is that of a single one.

    Args:
        trials: For each of `BOUNDS`; a missing one is not shown.
    """
    results = []
    for fault, bound in BOUNDS.items():
        seen = trials.get(fault, Trials(0, 0))
        fitness = judge(seen, bound)
        text = f"{fault}: {seen.faults} of {seen.total}, needs to be shown at most {bound:.0%}"
        if fitness is Fitness.NOT_SHOWN and not seen.faults:
            text += f"; {faultless_needed(bound)} without a fault would do"
        results.append(ConditionResult(fitness, text))
    return GateResult(USE, tuple(results))
