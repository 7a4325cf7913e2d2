"""Cameras and input devices: are they there, and may this user open them? And do all devices exist that are named?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from robot_rl.doctor.checks.serial_ports import permission
from robot_rl.doctor.contract.machine import Machine, read_number, read_text
from robot_rl.doctor.contract.result import CheckResult

_MICE = ("046d", "256f")
"""Makers of SpaceMice (Logitech, 3Dconnexion), as in HID_ID."""


def cameras(machine: Machine) -> list[tuple[Path, str]]:
    """Return the video nodes that give frames, each with the name of its camera; not those with metadata."""
    found = []
    for node in machine.nodes("video*"):
        about = machine.sys / "class/video4linux" / node.name
        if (read_number(about / "index") or 0.0) == 0.0:
            found.append((node, read_text(about / "name") or "camera"))
    return found


def input_devices(machine: Machine) -> list[tuple[Path, str]]:
    """Return the nodes of gamepads and SpaceMice, each with its name."""
    found = []
    for node in machine.nodes("input/event*"):
        about = machine.sys / "class/input" / node.name / "device"
        if list(about.glob("js*")):  # the kernel makes a joystick of gamepads alone
            found.append((node, read_text(about / "name") or "gamepad"))
    for node in machine.nodes("hidraw*"):
        lines = (read_text(machine.sys / "class/hidraw" / node.name / "device/uevent") or "").splitlines()
        values = dict(line.partition("=")[::2] for line in lines)
        maker = values.get("HID_ID", "::").split(":")[1].lower().lstrip("0").rjust(4, "0")
        name = values.get("HID_NAME", "")
        if maker in _MICE and any(part in name.lower() for part in ("space", "3dconnexion")):
            found.append((node, name))
    return found


def check_device_nodes(machine: Machine) -> Iterator[CheckResult]:
    """Look at cameras, input devices, and what the robot's configuration names."""
    for kind, found in (("camera", cameras(machine)), ("input device", input_devices(machine))):
        if not found:
            yield CheckResult(f"{kind}s", "ok", f"no {kind} is plugged into this machine")
        for node, name in found:
            yield permission(machine, node, f"{kind} {machine.shown(node)} ({name})", machine.needs(node))
    for device in filter(lambda name: name.startswith("/dev/"), machine.devices):  # a CAN bus is no node
        if not (machine.dev / device.removeprefix("/dev/")).exists():
            yield CheckResult(
                f"device {device}",
                "fault",
                f"the robot's configuration names {device}, which is not there",
                cure="plug it in, or correct the name: ls -l /dev/serial/by-id /dev/v4l/by-id",
            )
