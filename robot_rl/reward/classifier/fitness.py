"""Whether something may be used for a purpose: fit, unfit, or not shown yet because too few episodes were looked at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from robot_rl.reward.validation.figures import Figure
from robot_rl.reward.validation.gates import Condition
from robot_rl.statistics import faultless_trials


class Fitness(StrEnum):
    """How it stands."""

    FIT = "fit"
    UNPROVEN = "unproven"
    """Nothing speaks against it, but so few episodes cannot speak for it."""
    UNFIT = "unfit"


@dataclass(frozen=True)
class Standing:
    """A verdict with its reasons.

    Attributes:
        fitness: How it stands.
        failed: Conditions that are not met, in words.
        unsure: Conditions that are met, but may be so by luck, in words.
        causes: What is probably the matter.
    """

    fitness: Fitness
    failed: tuple[str, ...]
    unsure: tuple[str, ...]
    causes: tuple[str, ...]

    def __str__(self) -> str:
        """The verdict in words."""
        return {
            Fitness.FIT: "FIT to end episodes",
            Fitness.UNPROVEN: "NOT SHOWN to be fit to end episodes: too few episodes to be sure",
            Fitness.UNFIT: "NOT FIT to end episodes",
        }[self.fitness]


def stand(conditions: Sequence[Condition], figures: Mapping[str, Figure], causes: Sequence[str]) -> Standing:
    """Fit if the worse end of each interval meets its condition; unfit if a figure itself does not."""
    failed, unsure = [], []
    for condition in conditions:
        state, words = condition.judge(figures)
        if state == "passed":
            continue
        figure = figures.get(condition.figure)
        if figure is not None and not math.isnan(figure.value) and not condition.meets(figure.value):
            failed.append(words)
        else:
            unsure.append(words + _needed(condition, figure))
    fitness = Fitness.UNFIT if failed else Fitness.UNPROVEN if unsure else Fitness.FIT
    return Standing(fitness, tuple(failed), tuple(unsure), tuple(causes) if failed or unsure else ())


def _needed(condition: Condition, figure: Figure | None) -> str:
    """How many episodes without a fault would do, for a rate that has none."""
    bound = condition.at_least if condition.at_least is not None else condition.at_most
    if figure is None or bound is None or math.isnan(figure.value):
        return "; no such episodes were looked at"
    scale = 100.0 if condition.figure.endswith("_per_100_failures") else 1.0
    rate = (1.0 - bound) if condition.at_least is not None else bound / scale
    faultless = figure.value == (1.0 if condition.at_least is not None else 0.0)
    if faultless and 0.0 < rate < 1.0 and condition.figure not in ("roc_auc", "calibration_error", "delay_steps"):
        return f"; {faultless_trials(rate)} without a fault would do"
    return ""
