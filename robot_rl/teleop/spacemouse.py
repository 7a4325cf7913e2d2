"""3Dconnexion SpaceMouse, read as a HID device (package `hidapi`).

Its reports: 1 carries translation, 2 rotation (newer ones send both in report 1), as 16-bit numbers; 3 carries buttons.
Its own frame is x right, y towards the person, z down; here it is turned to x right, y away from the person, z up.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from robot_rl.clock import Clock
from robot_rl.teleop.device import DeviceError, Reading
from robot_rl.teleop.plugged import INSTALL, PluggedDevice

FULL_SCALE = 350.0
"""Counts at full deflection."""
_TO_HAND = np.array([1.0, -1.0, -1.0])
_VENDORS = {0x256F: None, 0x046D: range(0xC603, 0xC62C)}
"""3Dconnexion; and Logitech, for the products that it made of them."""

PERMISSION = (
    'give yourself access: echo \'SUBSYSTEM=="hidraw", ATTRS{idVendor}=="256f|046d", TAG+="uaccess"\' | '
    "sudo tee /etc/udev/rules.d/70-spacemouse.rules && sudo udevadm control --reload && sudo udevadm trigger, "
    "then plug it in again"
)


class HidStream(Protocol):
    """An open HID device that does not block."""

    def read(self, max_length: int) -> Sequence[int]:
        """Return the next report, nothing if there is none; raises `OSError` when it is unplugged."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class FoundSpaceMouse(NamedTuple):
    """A SpaceMouse that is plugged in."""

    name: str
    path: bytes


class SpaceMouse(PluggedDevice[HidStream]):
    """A SpaceMouse that is plugged in; arguments and errors as for any `PluggedDevice`."""

    kind = "spacemouse"
    permission = PERMISSION
    axes = ("x", "y", "z", "rx", "ry", "rz")
    buttons = ("left", "right")

    def __init__(self, connect: Callable[[], HidStream], name: str = "SpaceMouse", clock: Clock | None = None) -> None:
        super().__init__(connect, name, clock)

    def _begin(self, stream: HidStream) -> None:
        del stream  # it tells only what changes
        self._values, self._pressed, self._stamp = np.zeros(6), (False, False), self._clock.now()

    def _drain(self, stream: HidStream) -> None:
        while report := bytes(stream.read(64)):
            self._take(report)

    def _reading(self) -> Reading:
        return Reading(self._stamp, self._values.copy(), self._pressed)

    def _take(self, report: bytes) -> None:
        self._stamp = self._clock.now()
        kind, body = report[0], report[1:]
        if kind == 1 and len(body) >= 12:
            self._values[:3], self._values[3:] = _vector(body), _vector(body[6:])
        elif kind == 1 and len(body) >= 6:
            self._values[:3] = _vector(body)
        elif kind == 2 and len(body) >= 6:
            self._values[3:] = _vector(body)
        elif kind == 3 and body:
            self._pressed = (bool(body[0] & 1), bool(body[0] & 2))


def _vector(body: bytes) -> np.ndarray:
    return np.clip(np.array(struct.unpack_from("<3h", body)) / FULL_SCALE, -1.0, 1.0) * _TO_HAND


def find_spacemice() -> list[FoundSpaceMouse]:
    """Those that are plugged in.

    Raises:
        DeviceError: if the package to read them with is not installed.
    """
    hid = _hid()
    found: dict[bytes, FoundSpaceMouse] = {}
    for entry in hid.enumerate():
        products = _VENDORS.get(entry["vendor_id"], ())
        if products is None or entry["product_id"] in products:
            found.setdefault(entry["path"], FoundSpaceMouse(entry["product_string"] or "SpaceMouse", entry["path"]))
    return list(found.values())


def open_spacemouse(found: FoundSpaceMouse) -> SpaceMouse:
    """Open one.

    Raises:
        DeviceError: if it cannot be opened.
    """
    hid = _hid()

    def connect() -> HidStream:
        stream = hid.device()
        stream.open_path(found.path)
        stream.set_nonblocking(True)
        return stream

    return SpaceMouse(connect, found.name)


def _hid() -> Any:
    try:
        import hid
    except ImportError as error:
        raise DeviceError(f"a SpaceMouse needs the package hidapi; install it: {INSTALL}") from error
    return hid
