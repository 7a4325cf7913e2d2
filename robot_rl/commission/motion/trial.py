"""The contract of a trial: what a person is told before it, and what it finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.commission.motion.trace import Trace
from robot_rl.doctor.contract.result import CheckResult


@dataclass(frozen=True, eq=False)
class TrialOutcome:
    """What a trial found.

    Attributes:
        results: Its verdicts.
        traces: What was commanded and measured, by name, for the plot.
    """

    results: list[CheckResult]
    traces: dict[str, Trace] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A trial.

    Attributes:
        name: For people.
        announcement: What is going to happen, for the person who consents.
        run: Does it, and returns what it found.
        needed: Whether a fault of it ends the commissioning: what follows would be unsafe.
    """

    name: str
    announcement: str
    run: Callable[[ArmUnderTrial], TrialOutcome]
    needed: bool = False
