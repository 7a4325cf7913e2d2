"""Gates: the figures that labels or a classifier must reach before they may be used for something.

A condition is met only if the worse end of the figure's interval meets it. False positives decide: a labeller that
misses successes slows learning; one that invents them teaches the policy to deceive it (2409.15922). Gates are per
episode, because a chance of 1 % per frame would fire in 63 % of failures of 100 frames.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from robot_rl.errors import UncertifiedError
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.figures import Figure
from robot_rl.statistics import faultless_trials


class Fitness(StrEnum):
    """Whether something may be used for a purpose.

    FIT: the episodes show it. NOT_SHOWN: no figure is too low, but the episodes are too few to be sure. UNFIT: a figure
    is too low.
    """

    FIT = "fit"
    NOT_SHOWN = "not shown"
    UNFIT = "unfit"

    @classmethod
    def _missing_(cls, value: object) -> Fitness | None:
        return cls.NOT_SHOWN if value == "unproven" else None  # the name in older certificates


@dataclass(frozen=True)
class ConditionResult:
    """One condition, compared with the figures.

    Attributes:
        fitness: Whether the condition is met, not shown to be met, or not met.
        text: Figure, bound and interval, for people.
    """

    fitness: Fitness
    text: str


@dataclass(frozen=True)
class Condition:
    """A bound on one figure.

    Attributes:
        figure: Its name in the report.
        at_least: Bound from below, or None.
        at_most: Bound from above, or None.
    """

    figure: str
    at_least: float | None = None
    at_most: float | None = None

    def check(self, figures: Mapping[str, Figure]) -> ConditionResult:
        """Compare the condition with its figure, if there is one."""
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        found = figures.get(self.figure)
        if found is None or math.isnan(found.low):
            text = f"{self.figure}: not known, needs {bound}"
        else:
            worse = found.low if self.at_least is not None else found.high
            text = f"{self.figure}: {found.value:.3f}, at worst {worse:.3f}, needs {bound}"
            if self.meets(worse):
                return ConditionResult(Fitness.FIT, text)
        if found is not None and not math.isnan(found.value) and not self.meets(found.value):
            return ConditionResult(Fitness.UNFIT, text)
        return ConditionResult(Fitness.NOT_SHOWN, text + self._episodes_needed(found))

    def meets(self, value: float) -> bool:
        """Return whether a figure of this value is within the bound."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def _episodes_needed(self, figure: Figure | None) -> str:
        """Return how many episodes without a fault would show it, for a rate that has no fault yet."""
        if figure is None or math.isnan(figure.value):
            return "; there are no such episodes"
        faultless = figure.value == (1.0 if self.at_least is not None else 0.0)
        return f"; {needed} without a fault would do" if faultless and (needed := self.faultless_needed) else ""

    @property
    def faultless_needed(self) -> int | None:
        """How many episodes without a fault meet it; None if it is no bound on a share of episodes."""
        scale = 100.0 if self.figure.endswith("_per_100_failures") else 1.0
        rate = 1.0 - self.at_least if self.at_least is not None else (self.at_most or 0.0) / scale
        return faultless_trials(rate) if LEAST_RATE < rate < 1.0 and self.figure not in NO_RATES else None


@dataclass(frozen=True)
class GateResult:
    """Whether something may be used for a purpose, and why.

    Attributes:
        use: The purpose.
        conditions: Every condition with its result.
        causes: Probable reasons why it is not fit, for people.
    """

    use: str
    conditions: tuple[ConditionResult, ...]
    causes: tuple[str, ...] = ()

    @property
    def fitness(self) -> Fitness:
        """The worst result of a condition; fit without conditions."""
        return max((one.fitness for one in self.conditions), key=list(Fitness).index, default=Fitness.FIT)

    @property
    def passed(self) -> bool:
        """Whether every condition is met."""
        return self.fitness is Fitness.FIT

    @property
    def failed(self) -> tuple[str, ...]:
        """Texts of the conditions that are not met."""
        return tuple(one.text for one in self.conditions if one.fitness is Fitness.UNFIT)

    @property
    def unsure(self) -> tuple[str, ...]:
        """Texts of the conditions that are met, but perhaps by luck, and of those without a figure."""
        return tuple(one.text for one in self.conditions if one.fitness is Fitness.NOT_SHOWN)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every condition as `<fitness> <text>`."""
        return tuple(f"{one.fitness} {one.text}" for one in self.conditions)

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """The reasons whose condition is not fit."""
        pairs = zip(self.conditions, self.reasons, strict=True)
        return tuple(reason for one, reason in pairs if one.fitness is not Fitness.FIT)

    @property
    def remedy(self) -> str:
        """What would change the verdict, for people; empty if it is fit."""
        return {
            Fitness.FIT: "",
            Fitness.NOT_SHOWN: "more episodes with a known outcome may show it",
            Fitness.UNFIT: "more episodes will hardly change that, fewer faults would",
        }[self.fitness]

    @property
    def explanation(self) -> str:
        """The verdict, why, and what would change it, in one line for people."""
        reasons = "; ".join((*self.shortcomings, *self.causes))
        return f"{self} ({reasons}); {self.remedy}" if not self.passed else str(self)

    def demand(self, cure: str, *, allowed: bool, least: Fitness = Fitness.FIT) -> GateResult:
        """Return this verdict, for who may go on with it.

        Args:
            cure: Which command shows the quality, and how to take the risk.
            allowed: Whether the user takes the risk.
            least: The worst verdict that needs nobody to take a risk.

        Raises:
            UncertifiedError: if it is worse, and the user does not take the risk.
        """
        order = list(Fitness)
        if not allowed and order.index(self.fitness) > order.index(least):
            raise UncertifiedError(self.explanation, cure)
        return self

    def __str__(self) -> str:
        """Return the result as a headline."""
        return {
            Fitness.FIT: f"FIT for {self.use}",
            Fitness.NOT_SHOWN: f"NOT SHOWN to be fit for {self.use}: too few episodes to be sure",
            Fitness.UNFIT: f"NOT FIT for {self.use}",
        }[self.fitness]


def check_conditions(
    use: str, conditions: Sequence[Condition], figures: Mapping[str, Figure], causes: Sequence[str] = ()
) -> GateResult:
    """Compare figures with the conditions of a use.

    Args:
        use: The purpose.
        conditions: What it needs.
        figures: By name.
        causes: Probable reasons; they are kept unless every condition is met.
    """
    result = GateResult(use, tuple(condition.check(figures) for condition in conditions), tuple(causes))
    return GateResult(use, result.conditions) if result.passed else result


def not_compared(use: str, why: str) -> GateResult:
    """Return the verdict on what was never compared with known outcomes: it is not shown to be fit."""
    return GateResult(use, (ConditionResult(Fitness.NOT_SHOWN, why),))


def check_gates(kind: QueryKind, figures: Mapping[str, Figure]) -> list[GateResult]:
    """Return the result of each gate for labels of this kind."""
    return [check_conditions(use, conditions, figures) for use, conditions in GATES[kind].items()]


LEAST_RATE = 1e-9
"""Bounds on faults below this are met by no number of episodes that anybody has."""
NO_RATES = ("roc_auc", "beyond_a_clock", "calibration_error", "delay_steps")
"""Figures that are no share of episodes."""
ENDING_EPISODES = "sparse reward and ending episodes"
GATES: Mapping[QueryKind, Mapping[str, tuple[Condition, ...]]] = {
    QueryKind.SUCCESS: {
        ENDING_EPISODES: (
            Condition("calibrated", at_least=1.0),
            Condition("precision", at_least=0.98),
            Condition("recall", at_least=0.80),
            Condition("false_positives_per_100_failures", at_most=1.0),
            Condition("near_miss_false_positive_rate", at_most=0.05),
            Condition("roc_auc", at_least=0.98),
            Condition("calibration_error", at_most=0.05),
        ),
        "sparse reward that a person confirms": (
            Condition("recall", at_least=0.95),
            Condition("precision", at_least=0.80),
        ),
        "choosing episodes to keep": (
            Condition("roc_auc", at_least=0.90),
            Condition("precision_at_70_percent_recall", at_least=0.95),
        ),
    },
    QueryKind.PROGRESS: {
        "dense shaping": (
            Condition("voc_of_successes", at_least=0.90),
            Condition("final_gap", at_least=0.30),
            Condition("beyond_a_clock", at_least=0.60),
            Condition("rank_correlation_to_truth", at_least=0.90),
        ),
    },
    QueryKind.PREFERENCE: {
        "learning a reward": (
            Condition("accuracy", at_least=0.85),
            Condition("accuracy_largest_gaps", at_least=0.95),
            Condition("accuracy_smallest_gaps", at_least=0.60),
            Condition("flip_rate", at_most=0.10),
            Condition("unreadable_rate", at_most=0.01),
        ),
    },
    QueryKind.SCORE: {},
}
"""By kind of label and use. A score has no scale of its own, so it is fit for nothing by itself."""
