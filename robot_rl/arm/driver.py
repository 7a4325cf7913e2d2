"""The socket for arms: a driver reports what it measures, and follows set-points.

Drivers of other packages are found by their entry point in the group `robot_rl.arms`; `robot_node` runs the one that
its parameter `driver` names. `docs/add/arm.md` shows a complete one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from robot_rl.clock import Clock
from robot_rl.env.registry import load
from robot_rl.geometry import Pose

ARM_GROUP = "robot_rl.arms"

Receive = Callable[[str, int, Any], None]
"""Receives a part of the arm's state: its name, when it was measured [ns since 1970], and its value, as
`StateAssembler.add` does."""


class DriverHost(Protocol):
    """The program that runs a driver, such as `robot_node`."""

    wall: Clock
    """Time since 1970 [ns]: the clock of all stamps."""
    max_age: float
    """Oldest pose with which the arm may move [s]."""

    def problem(self, text: str) -> None:
        """Count and log something that is wrong, for people."""
        ...


class ArmDriver(Protocol):
    """A driver, or the way to one.

    It measures `pose` (`Pose` of the tcp in the base frame), `twist` (linear [m/s] and angular [rad/s], of the tcp in
    the base frame, shape (6,)), `wrench` ([N, Nm], exerted by the environment on the tool, at the tcp, in its frame,
    raw, shape (6,)), `joints` (`Joints`), and `gripper` (width between the fingers [m]) if there is one. It neither
    limits nor expires set-points; `CommandGuard` and `CommandFollower` do, for all drivers alike.
    """

    @property
    def measures_wrench(self) -> bool:
        """False if the wrench is not measured but always zero: then no limit on forces is in effect."""
        ...

    def start(self, receive: Receive) -> None:
        """Call `receive` with every measurement from now on, from any one thread."""
        ...

    def move_to(self, T_base_target: Pose) -> None:
        """Set the set-point of the Cartesian controller; return at once."""
        ...

    def move_gripper(self, width: float) -> None:
        """Set the width between the fingers [m]; return at once. Without a gripper, do nothing."""
        ...

    def hold(self) -> None:
        """Stay at the present pose, whatever the set-point was; return at once."""
        ...

    def faults(self) -> Sequence[str]:
        """Return why the arm would not obey now, each with its cure; empty if it would."""
        ...

    def close(self) -> None:
        """Release the arm; doing it twice is fine."""
        ...


class DriverClass(Protocol):
    """What an entry point names: a class of drivers with its settings.

    Attributes:
        Config: Frozen dataclass with a default for every field; its fields become parameters of `robot_node`.
    """

    Config: type[Any]

    def __call__(self, config: Any, host: DriverHost) -> ArmDriver:
        """Make the driver.

        Raises:
            ConfigError: if a setting is not valid.
        """
        ...


def find_driver(name: str) -> DriverClass:
    """Return the class of drivers of that name.

    Raises:
        UnknownNameError: if no such driver is installed.
        PluginError: if the package behind it cannot be imported.
    """
    return cast("DriverClass", load("driver", ARM_GROUP, name))
