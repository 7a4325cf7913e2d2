"""Input devices: which are connected, which can be used, and how to cure it if not.

Kinds are found by their entry points in the group `robot_rl.devices`, so that other packages can add theirs.
`docs/add/device.md` shows how.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from robot_rl.env.registry import load, names
from robot_rl.errors import RobotRLError
from robot_rl.teleop import gamepad, spacemouse
from robot_rl.teleop.device import Device, DeviceError

DEVICE_GROUP = "robot_rl.devices"
KINDS = ("spacemouse", "gamepad", "keyboard")
"""Kinds that come with robot_rl; the browser's devices come with the operator console."""


class Listed(NamedTuple):
    """One device, or one kind of which none can be used.

    Attributes:
        kind: Of `device_kinds()`.
        name: What it calls itself.
        ready: Whether it can be used now.
        remark: Why not and what to do about it, or where it is.
    """

    kind: str
    name: str
    ready: bool
    remark: str


def device_kinds() -> list[str]:
    """Return the kinds of devices that are installed."""
    return names(DEVICE_GROUP)


def list_devices() -> list[Listed]:
    """List every device that is connected, and for every kind without one, the reason."""
    rows = _spacemice() + _gamepads()
    terminal = sys.stdin.isatty()
    rows.append(Listed("keyboard", "terminal", terminal, "ready" if terminal else "standard input is no terminal"))
    return rows + [_try(kind) for kind in device_kinds() if kind not in KINDS]


def _try(kind: str) -> Listed:
    """Open and close a device of another package."""
    try:
        device = _open(kind)
    except RobotRLError as error:
        return Listed(kind, "-", False, str(error))
    device.close()
    return Listed(kind, device.name, True, "ready")


def _spacemice() -> list[Listed]:
    try:
        found = spacemouse.find_spacemice()
    except DeviceError as error:
        return [Listed("spacemouse", "-", False, str(error))]
    if not found:
        return [Listed("spacemouse", "-", False, "none is plugged in; a wireless one may have to be switched on")]
    rows = []
    for one in found:
        try:
            spacemouse.open_spacemouse(one).close()
            rows.append(Listed("spacemouse", one.name, True, one.path.decode(errors="replace")))
        except DeviceError as error:
            rows.append(Listed("spacemouse", one.name, False, str(error)))
    return rows


def _gamepads() -> list[Listed]:
    try:
        found = gamepad.find_gamepads()
    except DeviceError as error:
        return [Listed("gamepad", "-", False, str(error))]
    if not found:
        remark = "none is plugged in; one that the browser sees can be used through the operator console"
        return [Listed("gamepad", "-", False, remark)]
    return [Listed("gamepad", one.name, one.problem is None, one.problem or one.path) for one in found]


def open_devices(kinds: Sequence[str]) -> list[Device]:
    """Open a device of each kind: the first of it, and for a kind that is named again the second, and so on.

    Raises:
        UnknownNameError: if there is no such kind.
        DeviceError: if too few of a kind are plugged in or can be used, with the cure.
    """
    with contextlib.ExitStack() as on_error:
        devices: list[Device] = []
        for place, kind in enumerate(kinds):
            device = _open(kind, kinds[:place].count(kind))
            on_error.callback(device.close)
            devices.append(device)
        on_error.pop_all()
    return devices


def _open(kind: str, number: int = 0) -> Device:
    """Open a device of a kind, counted from 0."""
    make = cast("Callable[..., Device]", load("device", DEVICE_GROUP, kind))
    if number == 0:
        return make()
    if "number" not in inspect.signature(make).parameters:
        raise DeviceError(f"only one device of the kind {kind} can be used; give the other arm one of another kind")
    return make(number=number)


def open_first_spacemouse(number: int = 0) -> Device:
    """Open the first SpaceMouse, or a later one, counted from 0.

    Raises:
        DeviceError: if there is none, or it cannot be used.
    """
    mice = spacemouse.find_spacemice()
    if not mice:
        raise DeviceError("no SpaceMouse is plugged in; `robot-rl devices` lists what is")
    _check_number(number, len(mice), "SpaceMice")
    return spacemouse.open_spacemouse(mice[number])


def open_first_gamepad(number: int = 0) -> Device:
    """Open the first gamepad that can be used, or a later one, counted from 0.

    Raises:
        DeviceError: if there is none.
    """
    pads = [one for one in gamepad.find_gamepads() if one.problem is None]
    if not pads:
        raise DeviceError("no gamepad that can be used is plugged in; `robot-rl devices` gives the reason")
    _check_number(number, len(pads), "gamepads")
    return gamepad.open_gamepad(pads[number])


def _check_number(number: int, found: int, what: str) -> None:
    """Check that there are more devices than `number`."""
    if found <= number:
        raise DeviceError(f"{number + 1} {what} are needed, and {found} can be used; `robot-rl devices` lists them")
