"""What labels must reach before they are used for something. A gate is passed only by the worse end of each interval.

False positives decide: a labeller that misses successes slows learning, one that invents them is what gets learned
(2409.15922). So the gates are per episode: a chance of 1 % per frame would fire in 63 % of failures of 100 frames.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.figures import Figure


@dataclass(frozen=True)
class Condition:
    """One thing that a use needs.

    Attributes:
        figure: Its name in the report.
        at_least: Bound from below, or None.
        at_most: Bound from above, or None.
    """

    figure: str
    at_least: float | None = None
    at_most: float | None = None

    def judge(self, figures: Mapping[str, Figure]) -> tuple[str, str]:
        """`passed`, `failed` or `unknown`, and why in words."""
        bound = f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"
        found = figures.get(self.figure)
        if found is None or math.isnan(found.low):
            return "unknown", f"{self.figure}: not known, needs {bound}"
        worse = found.low if self.at_least is not None else found.high
        words = f"{self.figure}: {found.value:.3f}, at worst {worse:.3f}, needs {bound}"
        return ("passed" if self.meets(worse) else "failed"), words

    def meets(self, value: float) -> bool:
        """Whether a figure of this value would do."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True)
class GateResult:
    """Whether labels may be used for something.

    Attributes:
        use: For what.
        passed: Whether every condition is passed.
        reasons: Each condition in words, with how it stands.
    """

    use: str
    passed: bool
    reasons: tuple[str, ...]


GATES: Mapping[QueryKind, Mapping[str, tuple[Condition, ...]]] = {
    QueryKind.SUCCESS: {
        "sparse reward and ending episodes": (
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
"""By kind of label and use. A score has no scale of its own, so there is nothing that it is good for as it is."""


def judge(kind: QueryKind, figures: Mapping[str, Figure]) -> list[GateResult]:
    """A verdict for each use of labels of this kind."""
    verdicts = []
    for use, conditions in GATES[kind].items():
        judged = [condition.judge(figures) for condition in conditions]
        reasons = tuple(f"{state} {words}" for state, words in judged)
        verdicts.append(GateResult(use, all(state == "passed" for state, _ in judged), reasons))
    return verdicts
