"""The program that runs one driver for `IsolatedArm`: a module that calls `serve` with the class of the driver.

Requests and answers are JSON, one a line: a request is `{"call": NAME, ...}`, an answer `{"value": ...}`, or
`{"error": TEXT, "kind": NAME}` with the class of the error if it is one of ours.

    make     {"settings": {...}, "max_age": SECONDS, "epoch": NANOSECONDS}
                                                    makes the driver; the time of stamps is that of the monotonic clock,
                                                    which all processes of a machine share, plus `epoch`
    start                                           measurements are kept from now on
    exchange {"target": POSE or null, "hold": BOOL, "width": METRES or null}
                                                    obeys; answers what was measured since, faults, and problems
    recover                                         begins; measurements go on meanwhile
    recovered                                       whether it has ended, and its error
    own_checks, close                               as the driver's own
    is_stuck                                        whether its library does not come back from a call

The driver is closed when the requests end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np

from robot_rl.arm.control_thread import starting_beside, take_priority
from robot_rl.arm.driver import ArmDriver, DriverClass
from robot_rl.arm.own_checks import ChecksItself
from robot_rl.clock import WallClock
from robot_rl.config.load import component_from_dict
from robot_rl.errors import RobotRLError
from robot_rl.geometry import Pose

KEPT = 2000
"""Measurements that are kept at most until they are asked for; older ones are dropped."""


class SharedClock(WallClock):
    """The wall clock of the other process."""

    def __init__(self, epoch: int) -> None:
        self._offset = epoch


class DriverServer:
    """A driver, its host, and what is asked of them."""

    def __init__(self, kind: DriverClass) -> None:
        self._kind = kind
        self.wall, self.max_age = SharedClock(0), 0.0
        self._driver: ArmDriver | None = None
        self._lock = threading.Lock()
        self._measured: list[tuple[str, int, Any]] = []
        self._problems: list[str] = []
        self._recovery: Future[None] = Future()

    def problem(self, text: str) -> None:
        """Keep it for the other process, as a `DriverHost`."""
        with self._lock:
            self._problems.append(text)

    def make(self, settings: dict[str, Any], max_age: float, epoch: int) -> None:
        """Make the driver."""
        self.wall, self.max_age = SharedClock(epoch), max_age
        config = component_from_dict(self._kind.Config, settings, "settings of the arm")
        with starting_beside():  # the vendor's threads
            self._driver = self._kind(config, self)

    def start(self) -> None:
        """Start it; what answers requests gets the priority of threads that control."""
        self._made.start(self._keep)
        take_priority()

    def exchange(self, target: list[float] | None, hold: bool, width: float | None) -> dict[str, Any]:
        """Obey, and return what is new."""
        if hold:
            self._made.hold()
        if target is not None:
            self._made.move_to(Pose(np.array(target[:3]), np.array(target[3:])))
        if width is not None:
            self._made.move_gripper(width)
        with self._lock:
            measured, self._measured = self._measured, []
            problems, self._problems = self._problems, []
        parts = [(part, stamp, as_numbers(value)) for part, stamp, value in measured]
        return {"measured": parts, "faults": list(self._made.faults()), "problems": problems}

    def recover(self) -> None:
        """Begin to end its faults."""
        recovery: Future[None] = Future()
        self._recovery = recovery

        def recover() -> None:
            try:
                self._made.recover()
                recovery.set_result(None)
            except Exception as error:  # noqa: BLE001  (`recovered` raises it)
                recovery.set_exception(error)

        threading.Thread(target=recover, name="recovery", daemon=True).start()

    def recovered(self) -> bool:
        """Return whether that has ended; raise what it has raised."""
        if not self._recovery.done():
            return False
        self._recovery.result()
        return True

    def is_stuck(self) -> bool:
        """Return whether only another process helps: the driver's attribute of that name."""
        return bool(getattr(self._made, "is_stuck", False))

    def own_checks(self) -> list[dict[str, Any]]:
        """Return what it finds out about its arm."""
        driver = self._made
        return [dataclasses.asdict(one) for one in driver.own_checks()] if isinstance(driver, ChecksItself) else []

    def close(self) -> None:
        """Let the arm go."""
        if self._driver is not None:
            self._driver.close()

    @property
    def _made(self) -> ArmDriver:
        assert self._driver is not None
        return self._driver

    def _keep(self, part: str, stamp: int, value: Any) -> None:
        with self._lock:
            self._measured.append((part, stamp, value))
            del self._measured[:-KEPT]


def as_numbers(value: Any) -> Any:
    """Return a measured value as JSON has it: a number, a row, or the rows of a pose or of joints."""
    if isinstance(value, Pose):
        return [value.position.tolist(), value.quaternion.tolist()]
    if isinstance(value, tuple):
        return [np.asarray(row).tolist() for row in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return float(value)


def serve(kind: DriverClass) -> None:
    """Serve one driver on standard input and output, and end the process."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    server = DriverServer(kind)
    names = ("make", "start", "exchange", "recover", "recovered", "is_stuck", "own_checks", "close")
    calls: dict[str, Callable[..., Any]] = {name: getattr(server, name) for name in names}
    code = 1
    try:
        for line in sys.stdin:
            try:
                request = json.loads(line)
                answer = {"value": calls[request.pop("call")](**request)}
            except RobotRLError as error:
                answer = {"error": str(error), "kind": type(error).__name__}
            channel.write(json.dumps(answer) + "\n")
            channel.flush()
        code = 0
    except Exception:  # noqa: BLE001  (the other process quotes how this one ended)
        traceback.print_exc()
    finally:
        with contextlib.suppress(RobotRLError):
            server.close()
        os._exit(code)  # destructors of vendors wait, and some crash
