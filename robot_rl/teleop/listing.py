"""What is plugged in, whether it can be used, and if not, how to cure that."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from robot_rl.errors import UnknownNameError
from robot_rl.teleop import gamepad, spacemouse
from robot_rl.teleop.device import Device, DeviceError
from robot_rl.teleop.keyboard import TerminalKeyboard

KINDS = ("spacemouse", "gamepad", "keyboard")
"""Devices of this machine; the browser's come with the operator console."""


class Listed(NamedTuple):
    """One device, or one kind of which none can be used.

    Attributes:
        kind: Of `KINDS`.
        name: What it calls itself.
        ready: Whether it can be used now.
        remark: Why not and what to do about it, or where it is.
    """

    kind: str
    name: str
    ready: bool
    remark: str


def list_devices() -> list[Listed]:
    """Every device that is there, and for every kind of which there is none, why."""
    rows = _spacemice() + _gamepads()
    terminal = sys.stdin.isatty()
    rows.append(Listed("keyboard", "terminal", terminal, "ready" if terminal else "standard input is no terminal"))
    return rows


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
    """Opens the first device of each kind.

    Raises:
        UnknownNameError: if there is no such kind.
        DeviceError: if none of a kind is plugged in or can be used, with the cure.
    """
    with contextlib.ExitStack() as on_error:
        devices = []
        for kind in kinds:
            device = _open(kind)
            on_error.callback(device.close)
            devices.append(device)
        on_error.pop_all()
    return devices


def _open(kind: str) -> Device:
    if kind == "keyboard":
        return TerminalKeyboard()
    if kind == "spacemouse":
        mice = spacemouse.find_spacemice()
        if not mice:
            raise DeviceError("no SpaceMouse is plugged in; `robot-rl devices` says what is")
        return spacemouse.open_spacemouse(mice[0])
    if kind == "gamepad":
        pads = [one for one in gamepad.find_gamepads() if one.problem is None]
        if not pads:
            raise DeviceError("no gamepad that can be used is plugged in; `robot-rl devices` says why")
        return gamepad.open_gamepad(pads[0])
    raise UnknownNameError("device", kind, KINDS)
