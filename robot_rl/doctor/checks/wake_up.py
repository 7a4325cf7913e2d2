"""How late does this machine wake up a thread that sleeps for a millisecond?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from robot_rl.doctor.contract.machine import Machine
from robot_rl.doctor.contract.result import CheckResult, judged, percentile

SLEEPS, SLEEP = 800, 1e-3
"""How many, and how long each [s]."""
NOTE_ABOVE, FAULT_ABOVE = 2.0, 20.0
"""Of the 99th percentile [ms]. A period of control is 100 ms; a command expires after 250 ms."""


def check_wake_up(
    machine: Machine,
    sleep: Callable[[float], object] = time.sleep,
    now: Callable[[], int] = time.perf_counter_ns,
) -> Iterator[CheckResult]:
    """Measure it, in about a second."""
    del machine
    late = []
    for _ in range(SLEEPS):
        before = now()
        sleep(SLEEP)
        late.append((now() - before) * 1e-6 - SLEEP * 1e3)
    p50, p99, most = percentile(late, 0.5), percentile(late, 0.99), max(late)
    severity = judged(p99, NOTE_ABOVE, FAULT_ABOVE)
    consequence = "" if severity == "ok" else "; commands to the arm come that late too"
    yield CheckResult(
        "wake-up lateness",
        severity,
        f"of {SLEEPS} sleeps of 1 ms, half end up to {p50:.2f} ms late, 99 % up to {p99:.2f} ms, the worst "
        f"{most:.1f} ms{consequence}",
        round(p99, 3),
        "ms",
        f"at most {NOTE_ABOVE:g} ms for 99 %",
        "" if severity == "ok" else "end other programs (top), then repeat; if it stays, install a real-time kernel",
    )
