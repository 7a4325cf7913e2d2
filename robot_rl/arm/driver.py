"""The socket for arms: a driver reports what it measures, and follows set-points.

Drivers of other packages are found by their entry point in the group `robot_rl.arms`; `robot_node` runs the one that
its parameter `driver` names, and `robot-rl train TASK --robot robot.yaml` the one of the file. `docs/add/arm.md` shows
a complete one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from robot_rl.arm.kinematics.chain import Chain
from robot_rl.clock import Clock
from robot_rl.env.registry import load
from robot_rl.env.robot_io import Links
from robot_rl.geometry import Pose

ARM_GROUP = "robot_rl.arms"

MOTION = frozenset({"pose", "twist", "joints"})
"""What every driver measures."""
MEASURABLE = MOTION | {"wrench", "gripper"}
"""What a driver may measure."""

Receive = Callable[[str, int, Any], None]
"""Receives a part of the arm's state: its name, when it was measured [ns since 1970], and its value, as
`StateAssembler.add` does."""


class DriverHost(Protocol):
    """The program that runs a driver: `robot_node`, or `ArmRobotIO` in this process."""

    @property
    def wall(self) -> Clock:
        """Time since 1970 [ns]: the clock of all stamps."""
        ...

    @property
    def max_age(self) -> float:
        """Oldest pose with which the arm may move [s]."""
        ...

    def problem(self, text: str) -> None:
        """Count and log something that is wrong, for people."""
        ...


class ArmDriver(Protocol):
    """A driver, or the way to one.

    It measures `pose` (`Pose` of the tcp in the base frame), `twist` (linear [m/s] and angular [rad/s], of the tcp in
    the base frame, shape (6,)), `wrench` ([N, Nm], exerted by the environment on the tool, at the tcp, in its frame,
    raw, shape (6,)), `joints` (`Joints`), and `gripper` (width between the fingers [m]). What the arm has no sensor
    for is not reported: zeros would be taken for measurements. It neither limits nor expires set-points;
    `CommandGuard` and `CommandFollower` do, for all drivers alike.
    """

    @property
    def measures(self) -> frozenset[str]:
        """The parts that it reports: `MOTION`, and of `wrench` and `gripper` those that the arm measures."""
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
        """Return why the arm would not obey now, each with its cure; empty if it would.

        A fault in which the arm stopped itself, such as a reflex, a protective stop or a lost connection, stays until
        `recover` has ended it.
        """
        ...

    def recover(self) -> None:
        """End the faults that can be ended from here; the arm then holds where it is.

        Called only after a person has consented to it, never by a program on its own. Without a fault, do nothing. It
        may take some seconds.

        Raises:
            ArmStoppedError: if a fault stays, with its cure.
        """
        ...

    def close(self) -> None:
        """Release the arm, which holds; doing it twice is fine."""
        ...


class DriverClass(Protocol):
    """What an entry point names: a class of drivers with its settings.

    Attributes:
        Config: Frozen dataclass with a default for every field; its fields become parameters of `robot_node`, and
            settings of the `arm` in a robot file.

    A class with `only_in_robot_node = True` cannot be named in a robot file: it needs the topics of a ROS node.
    """

    Config: type[Any]

    def __call__(self, config: Any, host: DriverHost) -> ArmDriver:
        """Make the driver.

        Raises:
            ConfigError: if a setting is not valid.
            ArmStoppedError: if the arm cannot be reached, or is not ready to be driven.
        """
        ...


def joint_names(driver: ArmDriver, count: int) -> list[str]:
    """Return the names of an arm's joints: the driver's attribute `joint_names`, or joint1, joint2, ... without one.

    Args:
        driver: The driver.
        count: How many joints it reports.
    """
    names = list(getattr(driver, "joint_names", ()))
    return names if len(names) == count else [f"joint{number}" for number in range(1, count + 1)]


def links_of(driver: ArmDriver) -> Links | None:
    """Return where an arm's links are, for people: the driver's method `links`, or its chain's; None without both."""
    own, chain = cast("Links | None", getattr(driver, "links", None)), chain_of(driver)
    return own if own is not None or chain is None else chain.points


def chain_of(driver: ArmDriver) -> Chain | None:
    """Return the kinematics of the joints that an arm reports: the driver's attribute `chain`; None without one.

    It may end at the flange, or at the tcp.
    """
    return cast("Chain | None", getattr(driver, "chain", None))


def find_driver(name: str) -> DriverClass:
    """Return the class of drivers of that name.

    Raises:
        UnknownNameError: if no such driver is installed.
        PluginError: if the package behind it cannot be imported.
    """
    return cast("DriverClass", load("driver", ARM_GROUP, name))
