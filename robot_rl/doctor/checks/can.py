"""CAN buses: are they up?"""

from __future__ import annotations

from collections.abc import Iterator

from robot_rl.doctor.contract.machine import Machine, entries, read_text
from robot_rl.doctor.contract.result import CheckResult

_TYPE = "280"
"""ARPHRD_CAN, in `/sys/class/net/*/type`."""
_UP = 0x1


def check_can(machine: Machine) -> Iterator[CheckResult]:
    """Look at all of them."""
    found = [card for card in entries(machine.sys / "class/net") if read_text(card / "type") == _TYPE]
    buses = [device for device in machine.devices if not device.startswith("/dev/")]
    for name in sorted(set(buses) - {card.name for card in found}):
        yield CheckResult(
            f"CAN {name}",
            "fault",
            f"the robot's configuration names the CAN bus {name}, which is not there",
            cure="plug its adapter in, or correct the name: ip -brief link",
        )
    if not found and not buses:
        yield CheckResult("CAN", "ok", "no CAN bus is there")
    for card in found:
        up = bool(int(read_text(card / "flags") or "0", 16) & _UP)
        yield CheckResult(
            f"CAN {card.name}",
            "ok" if up else "fault" if card.name in machine.devices else "note",
            f"{card.name} is up" if up else f"{card.name} is down: no motor on it answers",
            cure="" if up else f"sudo ip link set {card.name} up type can bitrate 1000000",
        )
