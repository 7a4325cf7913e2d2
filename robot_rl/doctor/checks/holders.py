"""Which programs have cameras, serial ports and input devices open? Two programs on one device disturb each other."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator

from robot_rl.doctor.contract.machine import Machine, entries
from robot_rl.doctor.contract.result import CheckResult

_DEVICE = re.compile(r"/dev/(video\d+|tty(USB|ACM|AMA|THS)\d+|hidraw\d+)$")


def check_holders(machine: Machine) -> Iterator[CheckResult]:
    """Look at the open files of all processes that this user may look at."""
    held: dict[str, list[str]] = defaultdict(list)
    for number, name in machine.processes():
        if number == os.getpid():
            continue
        for device in {_target(link) for link in entries(machine.proc / str(number) / "fd")} - {""}:
            held[device].append(f"{name} (process {number})")
    if not held:
        yield CheckResult(
            "devices in use", "ok", "no program of yours has a camera, a serial port or an input device open"
        )
    for device, programs in sorted(held.items()):
        yield CheckResult(
            f"devices in use {device}",
            "fault" if machine.needs(machine.dev / device.removeprefix("/dev/")) else "note",
            f"{device} is used by {', '.join(programs)}",
            cure="end it, unless it is your own training: kill " + programs[0].split()[-1].rstrip(")"),
        )


def _target(link: os.PathLike[str]) -> str:
    try:
        target = os.readlink(link)
    except OSError:
        return ""  # closed meanwhile
    return target if _DEVICE.match(target) else ""
