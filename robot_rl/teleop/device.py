"""The small interface behind which every input device stands: what its axes and buttons are, and how they are now.

It knows no robot and no task; `mapping.py` says what an axis means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robot_rl.errors import RobotRLError


class DeviceError(RobotRLError):
    """An input device cannot be opened, or a map does not fit it."""


class DeviceLostError(DeviceError):
    """A device does not answer any more: unplugged, out of range, or its link is broken."""


@dataclass(frozen=True, eq=False)
class Reading:
    """How a device is held now.

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
        """For people, e.g. `SpaceMouse Compact`."""
        ...

    @property
    def kind(self) -> str:
        """Which map fits by default: `spacemouse`, `gamepad`, `keyboard`, `browser`, `joy`."""
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
        """How it is now; never waits.

        Raises:
            DeviceLostError: if it does not answer. A later call tries again, and works when it is back.
        """
        ...

    def close(self) -> None:
        """Gives it back; doing it twice is fine."""
        ...
