"""A gamepad, as Linux shows it (package `evdev`): two sticks, triggers, buttons.

Sticks count left and up as the kernel does: right and down are positive; the map turns the signs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from robot_rl.clock import Clock
from robot_rl.teleop.device import DeviceError, Reading
from robot_rl.teleop.plugged import INSTALL, PluggedDevice

# Codes of linux/input-event-codes.h; they are part of the kernel's interface.
_KEY, _ABS, _FORCE = 0x01, 0x03, 0x15
_RUMBLE = 0x50
_STICKS = {0x00: "left_x", 0x01: "left_y", 0x03: "right_x", 0x04: "right_y"}
_TRIGGERS = {0x02: "left_trigger", 0x05: "right_trigger"}
_BUTTONS = {
    0x130: "a",
    0x131: "b",
    0x133: "x",
    0x134: "y",
    0x136: "left_shoulder",
    0x137: "right_shoulder",
    0x13A: "back",
    0x13B: "start",
    0x13C: "home",
    0x13D: "left_stick",
    0x13E: "right_stick",
}
_GAMEPAD = 0x130
RUMBLE_MS = 500
"""How long it shakes [ms]."""
RUMBLE_STRENGTH = 0xC000
"""Of both motors, of 0xFFFF."""
PERMISSION = "give yourself access: sudo usermod -aG input $USER, then log out and in again"


class InputEvent(Protocol):
    """A change of one axis or button."""

    type: int
    code: int
    value: int


class EventStream(Protocol):
    """An open input device, as the package evdev gives it."""

    def read(self) -> Iterable[InputEvent]:
        """Return what changed; raises `BlockingIOError` if nothing did, and `OSError` when it is unplugged."""
        ...

    def absinfo(self, axis_num: int) -> Any:
        """`value`, `min` and `max` of an axis."""
        ...

    def write(self, etype: int, code: int, value: int) -> None:
        """Send an event to the device, such as one that starts an effect; raises `OSError` when it is unplugged."""
        ...

    def close(self) -> None:
        """Close it."""
        ...


class FoundGamepad(NamedTuple):
    """A gamepad that is plugged in; `problem` says why it cannot be used, or is None."""

    name: str
    path: str
    problem: str | None = None


class Gamepad(PluggedDevice[EventStream]):
    """A gamepad that is plugged in; other arguments and errors as for any `PluggedDevice`.

    Args:
        upload: Gives a stream the effect that shakes the gamepad, and returns its number; None: it has no motor.
    """

    kind = "gamepad"
    permission = PERMISSION
    axes = tuple(_STICKS.values())
    buttons = (*_BUTTONS.values(), *_TRIGGERS.values())

    def __init__(
        self,
        connect: Callable[[], EventStream],
        name: str = "gamepad",
        clock: Clock | None = None,
        upload: Callable[[EventStream], int | None] = lambda stream: None,
    ) -> None:
        self._upload = upload
        super().__init__(connect, name, clock)

    def rumble(self) -> None:
        """Shake for `RUMBLE_MS`, if it has a motor; never wait."""
        if self._stream is not None and self._effect is not None:
            with contextlib.suppress(OSError):  # unplugged, which the next `read` says
                self._stream.write(_FORCE, self._effect, 1)

    def _begin(self, stream: EventStream) -> None:
        self._effect: int | None = None
        with contextlib.suppress(OSError):  # it has no room for another effect: it does not shake
            self._effect = self._upload(stream)
        self._stamp = self._clock.now()
        self._ranges = {code: stream.absinfo(code) for code in (*_STICKS, *_TRIGGERS)}
        self._values = dict.fromkeys((*self.axes, *self.buttons), 0.0)
        for code, info in self._ranges.items():  # where it is already, before anything changes
            self._take_axis(code, info.value)

    def _drain(self, stream: EventStream) -> None:
        try:
            while True:
                for event in stream.read():
                    self._stamp = self._clock.now()
                    if event.type == _ABS and event.code in self._ranges:
                        self._take_axis(event.code, event.value)
                    elif event.type == _KEY and event.code in _BUTTONS:
                        self._values[_BUTTONS[event.code]] = float(event.value != 0)
        except BlockingIOError:
            return

    def _reading(self) -> Reading:
        return Reading(
            self._stamp,
            np.array([self._values[name] for name in self.axes]),
            tuple(self._values[name] > 0.5 for name in self.buttons),
        )

    def _take_axis(self, code: int, value: int) -> None:
        low, high = self._ranges[code].min, self._ranges[code].max
        share = (value - low) / (high - low) if high > low else 0.0
        if code in _STICKS:
            self._values[_STICKS[code]] = min(max(2.0 * share - 1.0, -1.0), 1.0)
        else:
            self._values[_TRIGGERS[code]] = share


def find_gamepads(folder: Path = Path("/dev/input")) -> list[FoundGamepad]:
    """Those that are plugged in, and input devices that may not be looked at.

    Raises:
        DeviceError: if the package to read them with is not installed.
    """
    evdev = _evdev()
    found = []
    for path in sorted(folder.glob("event*")):
        try:
            device = evdev.InputDevice(str(path))
        except PermissionError:
            found.append(FoundGamepad("input device", str(path), f"no permission; {PERMISSION}"))
            continue
        except OSError:
            continue  # went away while we looked
        if _GAMEPAD in device.capabilities().get(_KEY, []):
            found.append(FoundGamepad(device.name, str(path)))
        device.close()
    return found


def open_gamepad(found: FoundGamepad) -> Gamepad:
    """Open one.

    Raises:
        DeviceError: if it cannot be opened.
    """
    evdev = _evdev()
    return Gamepad(lambda: evdev.InputDevice(found.path), found.name, upload=_upload_rumble)


def _upload_rumble(stream: Any) -> int | None:
    """Give an `evdev.InputDevice` that may be written to the effect of `Gamepad.rumble`, see `Gamepad`."""
    may_write = fcntl.fcntl(stream.fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    if not may_write or _RUMBLE not in stream.capabilities().get(_FORCE, []):
        return None
    ff = _evdev().ff
    motors = ff.EffectType(ff_rumble_effect=ff.Rumble(RUMBLE_STRENGTH, RUMBLE_STRENGTH))
    effect = ff.Effect(_RUMBLE, -1, 0, ff.Trigger(0, 0), ff.Replay(RUMBLE_MS, 0), motors)
    number: int = stream.upload_effect(effect)
    return number


def _evdev() -> Any:
    try:
        import evdev
    except ImportError as error:
        raise DeviceError(f"a gamepad needs the package evdev; install it: {INSTALL}") from error
    return evdev
