"""What is plugged into this machine and could belong to a robot: serial ports, cameras, input devices."""

from __future__ import annotations

from dataclasses import dataclass

from robot_rl.doctor.checks.device_nodes import cameras, input_devices
from robot_rl.doctor.checks.serial_ports import PATTERNS, stable_name
from robot_rl.doctor.checks.usb import INTEL, usb_devices
from robot_rl.doctor.contract.machine import Machine, read_text


@dataclass(frozen=True)
class PluggedIn:
    """What was found.

    Attributes:
        ports: Serial ports, by the name that stays.
        cameras: Sources as `--camera` and the robot's file name them, e.g. `uvc:/dev/v4l/by-id/...`; and what they are.
        devices: Kinds of input devices.
    """

    ports: tuple[str, ...]
    cameras: tuple[tuple[str, str], ...]
    devices: tuple[str, ...]


def plugged_in(machine: Machine) -> PluggedIn:
    """Look for it; nothing is opened."""
    ports = tuple(stable_name(machine, node, "serial/by-id") for node in machine.nodes(*PATTERNS))
    realsense = [
        (f"realsense:{serial}", device.name)
        for device in usb_devices(machine)
        if device.is_camera and device.vendor == INTEL and (serial := read_text(device.folder / "serial"))
    ]
    uvc = [
        (f"uvc:{stable_name(machine, node, 'v4l/by-id')}", name)
        for node, name in cameras(machine)
        if "RealSense" not in name  # its streams; its own library opens it
    ]
    kinds = [("spacemouse" if "hidraw" in node.name else "gamepad") for node, _ in input_devices(machine)]
    return PluggedIn(ports, (*realsense, *uvc), tuple(dict.fromkeys(kinds)))
