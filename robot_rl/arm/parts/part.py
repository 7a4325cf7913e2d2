"""The sockets for parts of an arm: a gripper, and a sensor of forces. Found by entry point, like drivers of arms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import numpy as np

from robot_rl.arm.driver import DriverHost
from robot_rl.env.registry import load

GRIPPER_GROUP = "robot_rl.grippers"
WRENCH_GROUP = "robot_rl.wrench_sensors"


class ArmPart(Protocol):
    """What both have in common. Every method may be called from any thread."""

    def faults(self) -> Sequence[str]:
        """Return why it would not work now, each with its cure; empty if it would."""
        ...

    def recover(self) -> None:
        """End the faults that can be ended from here, after a person has consented.

        Raises:
            ArmStoppedError: if a fault stays.
        """
        ...

    def close(self) -> None:
        """Release it; doing it twice is fine."""
        ...


class GripperPart(ArmPart, Protocol):
    """A gripper."""

    def start(self) -> None:
        """Make it ready; its fingers may move.

        Raises:
            RobotLostError: if it does not answer.
        """
        ...

    @property
    def width(self) -> float | None:
        """Distance between the fingers as measured last [m]; None before the first time."""
        ...

    def move(self, width: float) -> None:
        """Set the distance between the fingers [m]; return at once."""
        ...


class WrenchPart(ArmPart, Protocol):
    """A sensor between the flange and the tool."""

    def start(self, receive: Callable[[int, np.ndarray], None]) -> None:
        """Call `receive` with every sample from now on: when it was measured [ns since 1970], and the wrench.

        The wrench is what the tool exerts on the sensor, its weight included, in [N] and [Nm], at the tcp and in its
        axes. Shape (6,).

        Raises:
            RobotLostError: if it does not answer.
        """
        ...


class PartClass(Protocol):
    """What an entry point names: a class of parts with its settings.

    Attributes:
        Config: Frozen dataclass.
    """

    Config: type[Any]

    def __call__(self, config: Any, host: DriverHost) -> Any:
        """Make the part.

        Raises:
            ConfigError: if a setting is not valid.
            RobotLostError: if it is not there.
        """
        ...


def find_gripper(name: str) -> PartClass:
    """Return the class of grippers of that name.

    Raises:
        UnknownNameError: if there is none.
        PluginError: if the package behind it cannot be imported.
    """
    return cast("PartClass", load("gripper", GRIPPER_GROUP, name))


def find_wrench_sensor(name: str) -> PartClass:
    """Return the class of force sensors of that name.

    Raises:
        UnknownNameError: if there is none.
        PluginError: if the package behind it cannot be imported.
    """
    return cast("PartClass", load("force sensor", WRENCH_GROUP, name))
