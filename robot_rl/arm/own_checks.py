"""What a driver can find out about its arm beyond what it measures: firmware, mode, cycles that were late. Optional."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable


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
