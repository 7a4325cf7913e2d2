"""Serial ports of servos, grippers and sensors: permission, delay of the adapter, and programs that interfere."""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator
from pathlib import Path

from robot_rl.doctor.contract.machine import Machine, read_number
from robot_rl.doctor.contract.result import CheckResult

PATTERNS = ("ttyUSB*", "ttyACM*", "ttyAMA*", "ttyTHS*")
WANTED_LATENCY = 1.0
"""Of an FTDI adapter's timer [ms]; the default of 16 ms allows 60 exchanges in a second."""
MEDDLERS = {
    "ModemManager": "sudo systemctl disable --now ModemManager",
    "brltty": "sudo apt remove brltty",
}
"""Programs that open serial ports by themselves, and how to end them."""


def check_serial_ports(machine: Machine) -> Iterator[CheckResult]:
    """Look at all ports, and at those that the robot's configuration names."""
    ports = machine.nodes(*PATTERNS)
    if not ports:
        yield CheckResult("serial ports", "ok", "no serial port is there")
    for port in ports:
        yield from _port(machine, port)
    if ports:
        running = {name for _, name in machine.processes()}
        for name in sorted(running & MEDDLERS.keys()):
            yield CheckResult(
                f"serial ports and {name}",
                "note",
                f"{name} runs, and opens serial ports when they are plugged in: servos answer garbage for seconds",
                cure=MEDDLERS[name],
            )


def permission(machine: Machine, node: Path, name: str, needed: bool) -> CheckResult:
    """Judge whether this user may use a device node.

    Args:
        machine: What is examined.
        node: The device node.
        name: Of the result.
        needed: Whether the robot's configuration names it; else a missing permission is a note.
    """
    shown = machine.shown(node)
    if machine.may_use(node):
        return CheckResult(name, "ok", f"{shown} may be used")
    group = _group(node)
    return CheckResult(
        name,
        "fault" if needed else "note",
        f"{shown} may not be read and written by this user",
        cure=f"sudo usermod -aG {group} $USER, then log out and in"
        if group != "root"
        else f"sudo chgrp plugdev {shown} && sudo chmod g+rw {shown} (for good: a udev rule)",
    )


def stable_name(machine: Machine, node: Path, folder: str) -> str:
    """Return the name of a node that stays after unplugging, below `/dev/<folder>`; the node itself without one."""
    for link in sorted((machine.dev / folder).glob("*")):
        if link.is_symlink() and Path(os.path.normpath(link.parent / os.readlink(link))) == node:
            return machine.shown(link)
    return machine.shown(node)


def _port(machine: Machine, port: Path) -> Iterator[CheckResult]:
    shown, stable = machine.shown(port), stable_name(machine, port, "serial/by-id")
    needed = machine.needs(port)
    yield permission(machine, port, f"serial port {shown}", needed)
    if needed and stable != shown and shown in machine.devices:
        yield CheckResult(
            f"serial port name {shown}",
            "note",
            f"{shown} is whichever was plugged in first, and may be another device tomorrow",
            cure=f"name it {stable} in the robot's configuration",
        )
    latency = read_number(machine.sys / "bus/usb-serial/devices" / port.name / "latency_timer")
    if latency is not None:
        late = latency > WANTED_LATENCY
        yield CheckResult(
            f"serial port delay {shown}",
            "note" if late else "ok",
            f"the adapter of {shown} keeps bytes for up to {latency:.0f} ms",
            latency,
            "ms",
            f"at most {WANTED_LATENCY:g} ms",
            f"echo 1 | sudo tee /sys/bus/usb-serial/devices/{port.name}/latency_timer" if late else "",
        )


def _group(node: Path) -> str:
    try:
        return grp.getgrgid(node.stat().st_gid).gr_name
    except (OSError, KeyError):
        return "root"
