"""The verdict on labels as rewards: by the gate of their use, or by the sequential test if the gate shows nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robot_rl.errors import DataError
from robot_rl.reward.label_store import Label
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.gates import GATES, Fitness, GateResult, not_compared
from robot_rl.reward.validation.ground_truth import GroundTruth
from robot_rl.reward.validation.probability_calibration import Calibration
from robot_rl.reward.validation.report import Report, make_report

USE = {kind: next(iter(uses)) for kind, uses in GATES.items() if uses}
"""The use of labels of a kind as rewards: the first of its uses."""


def judge_labels(
    kind: QueryKind,
    labels: Sequence[Label],
    truth: Mapping[str, GroundTruth],
    calibration: Calibration | None = None,
    trained_on: Sequence[str] = (),
) -> GateResult:
    """Compare labels with the truth and return the verdict on rewards of them; the arguments are `make_report`'s.

    What cannot be compared is not shown to be fit.
    """
    try:
        return verdict_of(make_report(kind, labels, truth, calibration, trained_on))
    except DataError:  # nothing to compare with
        return not_compared(USE[kind], "there are no known outcomes to compare them with")


def verdict_of(report: Report) -> GateResult:
    """Return the verdict of a report on rewards of such labels.

    Labels that the gate does not show to be fit are fit if the sequential test says so, which may be read after every
    episode. What the gate finds unfit stays unfit.
    """
    gate = next(gate for gate in report.gates if gate.use == USE[report.kind])
    sequential = report.sequential
    if gate.fitness is Fitness.NOT_SHOWN and sequential is not None and sequential.passed:
        return sequential
    return gate
