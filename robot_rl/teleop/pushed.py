"""A device whose readings come to us: the browser's keys, pads and gamepads, or a `sensor_msgs/Joy` publisher."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from robot_rl.clock import NS_PER_S, Clock, SystemClock
from robot_rl.teleop.device import DeviceError, DeviceLostError, Reading


class PushedDevice:
    """Keeps the newest reading that somebody pushed, for as long as it is fresh.

    Args:
        kind: Which map fits it.
        axes: Names of its axes.
        buttons: Names of its buttons.
        name: For people.
        max_age: Age at which a reading counts as lost [s].
        clock: Where the age is measured.
    """

    def __init__(
        self,
        kind: str,
        axes: Sequence[str],
        buttons: Sequence[str],
        *,
        name: str | None = None,
        max_age: float = 0.25,
        clock: Clock | None = None,
    ) -> None:
        self.kind, self.name = kind, name or kind
        self.axes, self.buttons = tuple(axes), tuple(buttons)
        self._max_age, self._clock = max_age, clock or SystemClock()
        self._lock = threading.Lock()
        self._reading: Reading | None = None
        self._at_rest = Reading(0, np.zeros(len(self.axes)), (False,) * len(self.buttons))

    def push(self, axes: Sequence[float], buttons: Sequence[bool]) -> None:
        """Take a reading. Called by the thread that receives them.

        Raises:
            DeviceError: if it has another number of axes or buttons, or an axis is not a number in [-1, 1].
        """
        values = np.asarray(axes, dtype=float)
        if values.shape != (len(self.axes),) or len(buttons) != len(self.buttons):
            raise DeviceError(
                f"{self.name}: {values.size} axes and {len(buttons)} buttons, "
                f"expected {len(self.axes)} and {len(self.buttons)}"
            )
        if not (np.abs(values) <= 1.0 + 1e-6).all():  # a NaN, too, is not
            raise DeviceError(f"{self.name}: axes must lie in [-1, 1], got {values.tolist()}")
        reading = Reading(self._clock.now(), np.clip(values, -1.0, 1.0), tuple(bool(button) for button in buttons))
        with self._lock:
            self._reading = reading

    def detach(self) -> None:
        """Nobody holds it any more, on purpose; it reads as at rest until somebody pushes again."""
        with self._lock:
            self._reading = None

    def read(self) -> Reading:
        """Return the newest reading, at rest before the first.

        Raises:
            DeviceLostError: if it is too old.
        """
        with self._lock:
            reading = self._reading
        if reading is None:
            return self._at_rest
        age = (self._clock.now() - reading.stamp) / NS_PER_S
        if age > self._max_age:
            raise DeviceLostError(f"{self.name}: the newest input is {age:.2f} s old, allowed is {self._max_age:.2f} s")
        return reading

    def close(self) -> None:
        """Hold nothing that would have to be given back."""
