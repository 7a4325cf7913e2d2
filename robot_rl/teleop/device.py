"""The socket for input devices: names of axes and buttons, and their newest reading.

`mapping.py` gives them their meaning. Devices of other packages are found by entry points (`listing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from robot_rl.errors import RobotRLError
from robot_rl.geometry import Pose


class DeviceError(RobotRLError):
    """An input device cannot be opened, or a map does not fit it."""


class DeviceLostError(DeviceError):
    """A device does not respond any more: unplugged, out of range, or its link is broken."""


@dataclass(frozen=True, eq=False)
class Reading:
    """The state of a device.

    Attributes:
        stamp: When the newest change came in [ns], on the machine's monotonic clock.
        axes: Each in [-1, 1], in the order of `Device.axes`; 0 is at rest.
        buttons: In the order of `Device.buttons`; True is pressed.
    """

    stamp: int
    axes: np.ndarray
    buttons: tuple[bool, ...]


class Device(Protocol):
    """An input device that is open."""

    @property
    def name(self) -> str:
        """Shown to people, e.g. `SpaceMouse Compact`."""
        ...

    @property
    def kind(self) -> str:
        """The map that fits by default: a name in `maps/`, or the path of a YAML file."""
        ...

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of its axes."""
        ...

    @property
    def buttons(self) -> tuple[str, ...]:
        """Names of its buttons."""
        ...

    def read(self) -> Reading:
        """Return the newest state; never wait.

        Raises:
            DeviceLostError: if it does not respond. A later call tries again, and works when it is back.
        """
        ...

    def close(self) -> None:
        """Release it; doing it twice is fine."""
        ...


@runtime_checkable
class ToolObserver(Protocol):
    """A device whose axes depend on where the arm's tool is, such as a leader arm."""

    def observe(self, T_base_tcp: Pose) -> None:
        """Take note of the pose of the tool; called before each `read`."""
        ...


@runtime_checkable
class Rumbles(Protocol):
    """A device that calls whoever holds it, by shaking."""

    def rumble(self) -> None:
        """Shake for a moment, if it has a motor; never wait."""
        ...
