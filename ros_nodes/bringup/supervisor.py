"""Starts nodes as processes, starts again what ends by itself, and ends them in order. Needs no ROS.

Each line that a node prints comes out with its name before it. Every process ends with the supervisor, however that
ends.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from types import FrameType

from ros_nodes.bringup.table import FASTDDS_PROFILE, NodeSpec, table_folder

PROFILE_VARIABLE = "FASTRTPS_DEFAULT_PROFILES_FILE"
RESPAWN_DELAY = 0.5
"""Time between the end of a node and its new start [s]."""
MOST_RESPAWNS, WITHIN = 5, 60.0
"""A node that ends more often than this within that many seconds is given up."""
PATIENCE = 10.0
"""How long a node may take to end before it is killed [s]."""
_PR_SET_PDEATHSIG = 1


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
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._readers: list[threading.Thread] = []
        self._starts: dict[str, deque[float]] = {name: deque(maxlen=MOST_RESPAWNS + 1) for name in self._specs}
        self._due: dict[str, float] = {}
        self._interrupts = 0

    def run(self) -> int:
        """Runs until the main node has ended, a node is given up, or Ctrl-C; returns the exit code."""
        handlers = {n: signal.signal(n, self._interrupt) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            self.start()
            while (code := self._look()) is None:
                time.sleep(0.05)
            return code
        finally:
            self.end()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def start(self) -> None:
        """Starts all nodes."""
        for name in self._specs:
            self._start(name)

    def codes(self) -> dict[str, int | None]:
        """Exit codes by name; None of a node that runs."""
        return {name: process.poll() for name, process in self._processes.items()}

    def end(self) -> None:
        """Ends all nodes: asks first, kills what does not listen."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + PATIENCE
        for name, process in self._processes.items():
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                _say(name, "does not end when asked; killed")
                process.kill()
                process.wait()
        for reader in self._readers:
            reader.join(1.0)

    def _start(self, name: str) -> None:
        self._starts[name].append(time.monotonic())
        process = subprocess.Popen(
            self._specs[name].command(self._namespace),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,  # Ctrl-C in a terminal is for the supervisor, who ends the nodes in order
            preexec_fn=_end_with_parent,
        )
        self._processes[name] = process
        reader = threading.Thread(target=_relay, args=(name, process), daemon=True)
        reader.start()
        self._readers.append(reader)
        _say(name, f"started, process {process.pid}")

    def _look(self) -> int | None:
        """Starts again what has ended; the exit code when that is all."""
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
                return code if code >= 0 else 1
            if self._interrupts and not self._has_main():
                return 130
            starts = self._starts[name]
            if not spec.respawn or code == 2 or (len(starts) > MOST_RESPAWNS and now - starts[0] < WITHIN):
                _say(name, f"has ended with {_code(code)}; it is not started again, so everything ends")
                return code if code > 0 else 1
            _say(name, f"has ended with {_code(code)}; it is started again")
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
        """Ctrl-C: the main node may save first, and the others serve it until it has."""
        del number, frame  # both signals mean the same
        self._interrupts += 1
        for name, spec in self._specs.items():
            if spec.main and self._alive(name):
                self._processes[name].send_signal(signal.SIGINT if self._interrupts < 3 else signal.SIGKILL)


def _relay(name: str, process: subprocess.Popen[bytes]) -> None:
    if process.stdout is None:
        return
    for line in process.stdout:
        _say(name, line.decode(errors="replace").rstrip())


def _say(name: str, text: str) -> None:
    print(f"[{name}] {text}", file=sys.stderr, flush=True)


def _code(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _end_with_parent() -> None:
    """In the child: have the kernel end it when the supervisor is gone, however that went."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
