"""Shared memory: is there room, and how much of it did programs that died leave behind?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from robot_rl.doctor.contract.machine import Machine, entries
from robot_rl.doctor.contract.result import CheckResult

WANTED_FREE = 64 * 2**20
"""Bytes: some seconds of frames between processes."""
MANY = 20
"""Left-over files that are worth a note."""
_OURS = ("fastrtps_", "sem.fastrtps_", "fast_datasharing_", "sem.fast_datasharing_")
"""Names that Fast DDS, the default middleware of ROS 2, gives its segments."""


def check_shared_memory(machine: Machine) -> Iterator[CheckResult]:
    """Look at `/dev/shm`."""
    folder = machine.dev / "shm"
    if not folder.is_dir():
        yield CheckResult("shared memory", "note", "there is no /dev/shm; processes exchange frames more slowly")
        return
    free = shutil.disk_usage(folder).free
    yield CheckResult(
        "shared memory",
        "ok" if free >= WANTED_FREE else "fault",
        f"{free / 2**20:.0f} MiB of /dev/shm are free",
        free,
        "bytes",
        f"at least {WANTED_FREE}",
        "" if free >= WANTED_FREE else "sudo mount -o remount,size=1G /dev/shm (in a container: --shm-size=1g)",
    )
    mapped = _mapped(machine)
    left = [path for path in entries(folder) if path.name.startswith(_OURS) and str(path.name) not in mapped]
    size = sum(_size(path) for path in left)
    many = len(left) > MANY
    yield CheckResult(
        "shared memory left-overs",
        "note" if many else "ok",
        f"{len(left)} segments of ROS 2 ({size / 2**20:.1f} MiB) belong to no program of yours that runs",
        len(left),
        "files",
        f"at most {MANY}",
        "end all ROS 2 programs, then: fastdds shm clean (or rm /dev/shm/*fastrtps_*)" if many else "",
    )


def _mapped(machine: Machine) -> set[str]:
    """Return the names in `/dev/shm` that processes, as far as we may look at them, have mapped or open."""
    names = set()
    for number, _ in machine.processes():
        process = machine.proc / str(number)
        try:
            lines = (process / "maps").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []  # of another user
        names |= {Path(line.split()[-1]).name for line in lines if "/dev/shm/" in line}
        for link in entries(process / "fd"):
            try:
                target = os.readlink(link)
            except OSError:
                continue  # closed meanwhile
            if target.startswith("/dev/shm/"):
                names.add(Path(target).name)
    return names


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # gone meanwhile
