"""What a driver can find out about its arm beyond what it measures: firmware, mode, cycles that were late. Optional."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from robot_rl.arm.control_thread import ControlThread

SAME_MASS = 0.01
"""Difference of two masses that are the same [kg]."""
LATE_SHARE = 0.1
"""Of the cycles of a driver that may begin a period late [%]."""


@dataclass(frozen=True)
class OwnCheck:
    """What a driver found about one thing.

    Attributes:
        name: Of the thing, e.g. `firmware`.
        severity: `fault`: to be cured before the arm moves. `note`: works, but worse than it could.
        text: What was found, for people.
        value: The number behind it; None if there is none.
        unit: Of `value`.
        limit: Which value is good.
        cure: A command, or what a person has to do.
    """

    name: str
    severity: Literal["ok", "note", "fault"]
    text: str
    value: float | None = None
    unit: str = ""
    limit: str = ""
    cure: str = ""


@runtime_checkable
class ChecksItself(Protocol):
    """A driver that does so; `robot-rl doctor` calls it while the arm stands."""

    def own_checks(self) -> Sequence[OwnCheck]:
        """Return what it finds out about its arm; nothing may move. Called after `start`."""
        ...


def late_cycles(*threads: ControlThread) -> OwnCheck:
    """Return how many cycles of a driver began a period or more after their deadline, in the worst of its threads."""
    worst = max(threads, key=lambda thread: thread.late / max(thread.cycles, 1))
    share = 100.0 * worst.late / max(worst.cycles, 1)
    late = share > LATE_SHARE
    return OwnCheck(
        "late cycles",
        "note" if late else "ok",
        f"{worst.late} of {worst.cycles} cycles of control began a period late",
        round(share, 3),
        "%",
        f"at most {LATE_SHARE:g} %",
        "cure the notes on real-time rights, wake-up lateness and load first; end other programs" if late else "",
    )
