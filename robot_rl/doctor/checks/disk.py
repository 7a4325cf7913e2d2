"""The disk for runs: how fast it is, and for how many hours of frames it has room."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from robot_rl.doctor.contract.machine import Machine
from robot_rl.doctor.contract.result import CheckResult, judged, percentile

WRITES, SIZE = 10, 2**20
"""How many files are written and waited for, and their size [bytes]."""
NOTE_ABOVE, FAULT_ABOVE = 100.0, 1000.0
"""Of the slowest write [ms]. Steps queue while one waits; a full queue is reported in the metrics of a run."""
HOURS_NOTE, HOURS_FAULT = 8.0, 1.0
"""Of frames for which there is room."""


def check_disk(machine: Machine) -> Iterator[CheckResult]:
    """Measure it in the nearest folder above `machine.folder` that exists; what is written goes again."""
    folder = next(path for path in (machine.folder.absolute(), *machine.folder.absolute().parents) if path.is_dir())
    try:
        times = _write(folder)
    except OSError as error:
        yield CheckResult(
            "disk speed",
            "fault",
            f"nothing can be written in {folder}: {error.strerror}",
            cure="choose another folder: --folder DIR",
        )
    else:
        slowest = max(times)
        yield CheckResult(
            "disk speed",
            judged(slowest, NOTE_ABOVE, FAULT_ABOVE),
            f"1 MB is on the disk of {folder} after {percentile(times, 0.5):.1f} ms, and in the worst case "
            f"after {slowest:.0f} ms",
            round(slowest, 2),
            "ms",
            f"at most {NOTE_ABOVE:g} ms",
            "" if slowest <= NOTE_ABOVE else "write runs to a disk in this machine, not to a network or a USB stick",
        )
    free = shutil.disk_usage(folder).free
    hours = free / machine.bytes_per_hour
    yield CheckResult(
        "disk space",
        "ok" if hours >= HOURS_NOTE else "note" if hours >= HOURS_FAULT else "fault",
        f"{free / 1e9:.1f} GB are free: room for {min(hours, 999):.0f} hours of frames at "
        f"{machine.bytes_per_hour / 1e9:.1f} GB an hour",
        round(hours, 2),
        "h",
        f"at least {HOURS_NOTE:g} h",
        "" if hours >= HOURS_NOTE else "make room, or give another folder: --folder DIR",
    )


def _write(folder: Path) -> list[float]:
    """Return how long each write took [ms]."""
    block, times = os.urandom(SIZE), []
    with tempfile.TemporaryDirectory(prefix=".robot_rl_doctor_", dir=folder) as temporary:
        for number in range(WRITES):
            begun = time.perf_counter()
            with open(Path(temporary) / str(number), "wb") as file:
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
            times.append(1e3 * (time.perf_counter() - begun))
    return times
