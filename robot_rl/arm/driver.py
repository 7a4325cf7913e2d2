"""What a driver of an arm is to the rest: it hands on what it measures, and is told set-points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from robot_rl.geometry import Pose

Take = Callable[[str, int, Any], None]
"""Takes a part of the arm's state: its name, when it was measured [ns since 1970], and its value, as
`StateAssembler.add` does."""


class ArmDriver(Protocol):
    """A driver, or the way to one.

    It measures `pose`, `twist`, `wrench` (raw, at the tcp and in its frame), `joints`, and `gripper` (the width between
    the fingers [m]) if there is one. It neither limits nor expires set-points; others do.
    """

    def start(self, take: Take) -> None:
        """From now on, hands on every measurement."""
        ...

    def move_to(self, T_base_target: Pose) -> None:
        """Sets the set-point of the Cartesian controller; returns at once."""
        ...

    def move_gripper(self, width: float) -> None:
        """Sets the width between the fingers [m]; returns at once. Without a gripper, nothing happens."""
        ...

    def hold(self) -> None:
        """Stays where it is now, whatever was said before; returns at once."""
        ...

    def faults(self) -> Sequence[str]:
        """Why the arm would not obey now, and the cure; none if it would."""
        ...
