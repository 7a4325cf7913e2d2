"""A driver that runs in a process of its own, since the vendor's library may end the process that it is in."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np

from robot_rl import errors
from robot_rl.arm.control_thread import ControlThread
from robot_rl.arm.driver import DriverHost, Receive
from robot_rl.arm.own_checks import OwnCheck
from robot_rl.env.state_assembler import Joints
from robot_rl.errors import ArmStoppedError, RobotRLError
from robot_rl.geometry import Pose
from robot_rl.system.line_process import LineProcess, NoAnswerError

ANSWER_LIMIT = 5.0
"""Longest time for an answer while the arm is driven [s]: then the process counts as hung, and is ended."""
LONG_LIMIT = 60.0
"""The same where the driver connects or ends [s]."""
LOOK = 0.005
"""Between two looks at whether something has ended [s]."""


class IsolatedArm:
    """An arm whose driver runs in another process; a subclass names it.

    The thread of this process passes set-points on and fetches measurements, with the stamps of when they were made.
    A process that ends is a fault like others: the arm is stopped by its controller, which is not commanded any more,
    and consent starts the process again.

    Args:
        config: Settings of the driver.
        host: The program that runs it.

    Raises:
        RobotRLError: what the driver itself raises.
    """

    program: ClassVar[tuple[str, ...]] = ()
    """Arguments for Python that run the driver: they name a program that calls `serve`."""

    def __init__(self, config: Any, host: DriverHost) -> None:
        self._config, self._host = config, host
        self._asking = threading.Lock()
        self._wanting = threading.Lock()  # what is wanted changes, and is taken, as a whole: no hold comes in between
        self._process: LineProcess | None = None
        self._lost: str | None = None
        self._faults: list[str] = []
        self._target: Pose | None = None
        self._width: float | None = None
        self._holds = False
        self._receive: Receive | None = None
        self._handed_on = 0  # how often something was
        self._make()
        self._thread = ControlThread("isolated arm", config.rate, self._exchange, host.problem)

    def start(self, receive: Receive) -> None:
        """Call `receive` with every measurement from now on."""
        with self._asking:
            self._call("start", LONG_LIMIT)
        self._receive = receive
        self._thread.start()

    def move_to(self, T_base_target: Pose) -> None:
        """Set the set-point."""
        with self._wanting:
            self._target = T_base_target

    def move_gripper(self, width: float) -> None:
        """Set the width between the fingers [m]."""
        with self._wanting:
            self._width = width

    def hold(self) -> None:
        """Stay at the present pose."""
        with self._wanting:
            self._target, self._holds = None, True

    def faults(self) -> Sequence[str]:
        """Return why the arm would not obey now."""
        if self._lost is not None:
            return [self._lost]
        if self._receive is not None and not self._thread.alive:
            return ["the driver's thread has ended with an error; start the program again"]
        return self._faults

    def recover(self) -> None:
        """End the faults; a process that has ended is started again.

        Raises:
            ArmStoppedError: if a fault stays.
        """
        with self._asking:
            if is_new := self._process is None:
                self._make()
                if self._receive is not None:
                    self._call("start", LONG_LIMIT)
                self._is_free()
            else:
                self._call("recover", ANSWER_LIMIT)
        while not is_new and not self._recovered():  # meanwhile measurements go on
            time.sleep(LOOK)
        before, end = self._handed_on, time.monotonic() + ANSWER_LIMIT
        while self._thread.alive and self._handed_on == before and time.monotonic() < end:
            time.sleep(LOOK)  # who may go on wants to know where the arm is

    def own_checks(self) -> list[OwnCheck]:
        """Return what the driver finds out about its arm, as a `ChecksItself`."""
        with self._asking:
            return [OwnCheck(**row) for row in self._call("own_checks", LONG_LIMIT)]

    def close(self) -> None:
        """Release the arm, and end the process."""
        self._receive = None
        self._thread.close()
        with self._asking:
            if self._process is not None:
                with contextlib.suppress(RobotRLError):
                    self._call("close", LONG_LIMIT)
            if self._process is not None:
                self._process.end()
            self._process = None

    def _recovered(self) -> bool:
        """Return whether the driver has recovered; one that is stuck is ended, and the next consent starts another."""
        with self._asking:
            try:
                has_ended: bool = self._call("recovered", ANSWER_LIMIT)
            except RobotRLError as error:
                if self._process is not None and self._call("is_stuck", ANSWER_LIMIT):
                    self._process.end(0.0)
                    self._process, self._lost = None, str(error)
                raise
            if has_ended:
                self._is_free()
        return has_ended

    def _is_free(self) -> None:
        """Forget what was wanted, and what was wrong."""
        self._take_wanted()
        self._lost, self._faults = None, []

    def _take_wanted(self) -> dict[str, Any]:
        """Return what is wanted, as the driver's process is told it, and forget it."""
        with self._wanting:
            target, hold, width = self._target, self._holds, self._width
            self._target, self._holds, self._width = None, False, None
        pose = None if target is None else [*target.position.tolist(), *target.quaternion.tolist()]
        return {"target": pose, "hold": hold, "width": width}

    def _make(self) -> None:
        self._process = LineProcess([sys.executable, "-P", *self.program])
        try:
            self._call(
                "make",
                LONG_LIMIT,
                settings=asdict(self._config),
                max_age=self._host.max_age,
                epoch=self._host.wall.now() - time.monotonic_ns(),
            )
        except BaseException:  # Ctrl-C, too
            if self._process is not None:
                self._process.end()
            self._process = None
            raise

    def _exchange(self) -> None:
        """Pass on what is wanted, and hand on what was measured; skipped while the driver is asked something longer."""
        if not self._asking.acquire(blocking=False):
            return
        try:
            if self._process is None:
                return
            try:
                found = self._call("exchange", ANSWER_LIMIT, **self._take_wanted())
            except RobotRLError as error:  # this thread goes on: without it nothing would be measured any more
                self._faults = [str(error)]
                return
            self._faults = found["faults"]
        finally:
            self._asking.release()
        for text in found["problems"]:
            self._host.problem(text)
        if (receive := self._receive) is not None:
            for part, stamp, value in found["measured"]:
                receive(part, stamp, _as_value(part, value))
            self._handed_on += bool(found["measured"])

    def _call(self, name: str, limit: float, **arguments: Any) -> Any:
        if self._process is None:
            raise ArmStoppedError(self._lost or "the driver's process has ended")
        try:
            answer = self._process.request({"call": name, **arguments}, limit)
        except NoAnswerError as error:
            self._process = None
            self._lost = f"the driver's own process is lost ({error}); check the arm, and consent to start it again"
            raise ArmStoppedError(self._lost) from error
        if "error" in answer:
            raise getattr(errors, answer["kind"], RobotRLError)(answer["error"])
        return answer["value"]


def _as_value(part: str, value: Any) -> Any:
    if part == "pose":
        return Pose(np.array(value[0]), np.array(value[1]))
    if part == "joints":
        return Joints(np.array(value[0]), np.array(value[1]))
    return np.array(value) if isinstance(value, list) else value
