"""The nodes of a bring-up as processes: which start again, which end everything, and in which order. Needs no ROS.

Each line that a node prints comes out with its name before it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from types import FrameType

from robot_rl.system.child_process import ChildProcess, describe_code
from robot_rl.system.process import leave_terminal
from ros_nodes.bringup.table import FASTDDS_PROFILE, NodeSpec, table_folder

PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"
SECURITY_VARIABLE = "ROS_SECURITY_ENABLE"
RESPAWN_DELAY = 0.5
"""Time between the end of a node and its new start [s]."""
MOST_RESPAWNS, WITHIN = 5, 60.0
"""A node that ends more often than this within that many seconds is given up."""
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, and what means the same: a request from outside, and a terminal that is closed."""
ORDERLY = signal.SIGTERM
"""Ends a node in order, as SIGINT does; but where a node still imports, Python ends without a traceback."""
GRACE_PERIOD = 10.0
"""Time for an orderly end of a node before it is killed [s]."""


class Supervisor:
    """Processes for nodes.

    Args:
        specs: The nodes.
        namespace: Of all of them.
        environment: Variables to set, e.g. `ROS_DOMAIN_ID`.
    """

    def __init__(self, specs: Sequence[NodeSpec], namespace: str, environment: dict[str, str]) -> None:
        self._specs, self._namespace = {spec.name: spec for spec in specs}, namespace
        profile = {PROFILE_VARIABLE: str(table_folder() / FASTDDS_PROFILE)}
        self._environment = {**profile, **os.environ, **environment}
        self._processes: dict[str, ChildProcess] = {}
        self._starts: dict[str, deque[float]] = {name: deque(maxlen=MOST_RESPAWNS + 1) for name in self._specs}
        self._due: dict[str, float] = {}
        self._interrupts = 0

    def run(self) -> int:
        """Run until the main node has ended, a node is given up, or Ctrl-C; return the exit code."""
        handlers = {n: signal.signal(n, self._interrupt) for n in STOPS}
        try:
            self.start()
            while (code := self._check()) is None:
                time.sleep(0.05)
            return code
        finally:
            self.end()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def start(self) -> None:
        """Start all nodes; none any more after Ctrl-C, which reaches only those that run."""
        for name in self._specs:
            if not self._interrupts:
                self._start(name)

    def codes(self) -> dict[str, int | None]:
        """Return exit codes by name; None for a node that runs."""
        return {name: process.poll() for name, process in self._processes.items()}

    def end(self) -> None:
        """End all nodes: with `ORDERLY`, and with SIGKILL those that still run after the grace period."""
        for process in self._processes.values():
            process.send_signal(ORDERLY)
        deadline = time.monotonic() + GRACE_PERIOD
        for name, process in self._processes.items():
            if not process.end(max(0.0, deadline - time.monotonic())):
                _report(name, "did not end in time; killed")

    def _start(self, name: str) -> None:
        self._starts[name].append(time.monotonic())
        process = self._processes[name] = ChildProcess(
            self._specs[name].command(self._namespace, secured=self._environment.get(SECURITY_VARIABLE) == "true"),
            environment=self._environment,
            on_line=partial(_report, name),
            death_signal=ORDERLY,  # a node may still stop the arm
        )
        _report(name, f"started, process {process.pid}")

    def _check(self) -> int | None:
        """Start again what has ended; return the exit code when everything is to end, else None."""
        now = time.monotonic()
        for name in [name for name, due in self._due.items() if now >= due]:
            del self._due[name]
            self._start(name)
        for name, process in self._processes.items():
            code = process.poll()
            if code is None or name in self._due:
                continue
            spec = self._specs[name]
            if spec.main and (code in (0, 2, 130) or self._interrupts):
                return 130 if code == -ORDERLY else code if code >= 0 else 1
            if self._interrupts and not self._has_main():
                return 130
            starts = self._starts[name]
            if not spec.respawn or code == 2 or (len(starts) > MOST_RESPAWNS and now - starts[0] < WITHIN):
                _report(name, f"has ended with {describe_code(code)}; it is not started again, so everything ends")
                return code if code > 0 else 1
            _report(name, f"has ended with {describe_code(code)}; it is started again")
            self._due[name] = now + RESPAWN_DELAY
        if self._interrupts and not self._has_main():
            return 130
        return None

    def _has_main(self) -> bool:
        return any(spec.main and self._alive(name) for name, spec in self._specs.items())

    def _alive(self, name: str) -> bool:
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle Ctrl-C: the main node may save first, and the others serve it until it has."""
        del frame  # where it was does not matter
        if number == signal.SIGHUP:
            leave_terminal()
        self._interrupts += 1
        for name, spec in self._specs.items():
            if spec.main and self._alive(name):
                self._processes[name].send_signal(ORDERLY if self._interrupts < 3 else signal.SIGKILL)


def _report(name: str, text: str) -> None:
    print(f"[{name}] {text}", file=sys.stderr, flush=True)
