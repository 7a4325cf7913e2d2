"""Does the processor run at its full clock, and is it free?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from robot_rl.doctor.contract.machine import Machine, read_text
from robot_rl.doctor.contract.result import CheckResult

LOAD_A_CORE = 0.7
"""More than this, and threads wait for a core."""


def check_processor(machine: Machine) -> Iterator[CheckResult]:
    """Look at the governors of all cores and at the load of the last minute."""
    cores = _cores(machine)
    governors = Counter(filter(None, (read_text(core / "cpufreq/scaling_governor") for core in cores)))
    slow = {name: count for name, count in governors.items() if name != "performance"}
    if not governors:
        yield CheckResult(
            "CPU governor", "note", "the clock of the processor is not reported here (a virtual machine?)"
        )
    elif slow:
        listed = ", ".join(f"{count} cores with {name!r}" for name, count in slow.items())
        yield CheckResult(
            "CPU governor",
            "note",
            f"{listed}: they slow down between commands and need time to get fast again",
            limit="performance",
            cure="sudo cpupower frequency-set -g performance",
        )
    else:
        yield CheckResult("CPU governor", "ok", f"all {len(cores)} cores keep their full clock (performance)")
    text = (read_text(machine.proc / "loadavg") or "").split()
    if not text or not cores:
        return
    load, most = float(text[0]), LOAD_A_CORE * len(cores)
    busy = load > most
    yield CheckResult(
        "CPU load",
        "note" if busy else "ok",
        f"{load:.1f} threads wanted {len(cores)} cores in the last minute"
        + ("; the loop of control competes with other programs" if busy else ""),
        load,
        limit=f"at most {most:.1f}",
        cure="end what else runs (top)" if busy else "",
    )


def _cores(machine: Machine) -> list[Path]:
    return [path for path in (machine.sys / "devices/system/cpu").glob("cpu[0-9]*") if path.is_dir()]
