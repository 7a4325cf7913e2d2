"""A session with a human operator: supervised environment, devices, console, requests, and Ctrl-C.

What a session records is defined in `demo_session.py` and `classifier_frames_session.py`.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Protocol

from robot_rl.console.job_state import JobState
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import Supervision
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.errors import UnknownNameError
from robot_rl.hil.operator_setup import OperatorOptions, open_operator
from robot_rl.system.process import stop_on_signal
from robot_rl.teleop.device_operator import Person

REQUESTS = ("start", "stop", "discard", "redo", "success", "failure", "finish")
"""All requests; which of them are possible depends on the phase."""


class Requests:
    """Queue of the operator's requests: any thread adds, the control loop removes.

    Args:
        remark: Called in the control loop with a message about each request that is not possible.
    """

    def __init__(self, remark: Callable[[str], object]) -> None:
        self._remark = remark
        self._waiting: SimpleQueue[str] = SimpleQueue()

    def __bool__(self) -> bool:
        """Return whether a request is waiting."""
        return not self._waiting.empty()

    def add(self, name: str) -> None:
        """Add one of `REQUESTS`.

        Raises:
            UnknownNameError: if there is no such request.
        """
        if name not in REQUESTS:
            raise UnknownNameError("request", name, REQUESTS)
        self._waiting.put(name)

    def next(self, possible: tuple[str, ...]) -> str | None:
        """Return the next possible request, or None; drop those that are not possible with a remark."""
        try:
            while (name := self._waiting.get_nowait()) not in possible:
                self._remark(f"cannot {name} now; possible: {', '.join(possible)}")
        except Empty:
            return None
        return name


TIME_FACTOR = 3
"""An operator may take this many times the step limit of the task."""


class TerminalReporter:
    """Shows the phases in the console, and in the terminal with a line each.

    Args:
        board: State of the job that the console shows.
    """

    def __init__(self, board: JobState) -> None:
        self._board = board

    def phase(self, name: str, text: str, requests: tuple[str, ...]) -> None:
        """Show a new phase."""
        self._board.phase(name, text, requests)
        print(text, file=sys.stderr)

    def kept(self, count: int, wanted: int) -> None:
        """Show how many demonstrations there are."""
        self._board.kept(count, wanted)

    def remark(self, text: str) -> None:
        """Show a remark."""
        self._board.remark(text)
        print(text, file=sys.stderr)


class Session(Protocol):
    """A recording that an operator takes part in."""

    def request(self, name: str) -> None:
        """Add a request of the operator, from any thread."""
        ...

    def run(self, stop: Callable[[], bool]) -> None:
        """Run until it is finished, or `stop` returns True."""
        ...


@dataclass(frozen=True)
class TeleopSession:
    """The parts of an open session.

    Attributes:
        env: The supervised environment with the person as its operator.
        supervision: Of that environment.
        person: The operator, who leads with the devices.
        reporter: Shows the phases in the console and the terminal.
        board: State of the job that the console shows; an observer of every step.
        run: Runs a session; the console stays open until the context ends, so that pages show that it is finished.
    """

    env: RobotEnv
    supervision: Supervision
    person: Person
    reporter: TerminalReporter
    board: JobState
    run: Callable[[Session], None]


@contextlib.contextmanager
def open_session(
    cell: Workcell, observed: WorkcellOptions, operator: OperatorOptions, store: Path
) -> Iterator[TeleopSession]:
    """Open what one session with an operator needs; the first Ctrl-C ends the session in order.

    Args:
        cell: The robot and its task, with the reward sources.
        observed: What is recorded of the robot.
        operator: Devices and console.
        store: Directory of the episodes, and of the record of what the operator did.
    """
    steps, stopped = TIME_FACTOR * cell.task.spec.max_steps, threading.Event()

    def stop() -> None:
        stopped.set()
        print("stopping; what was recorded is kept", file=sys.stderr, flush=True)

    with contextlib.ExitStack() as stack:
        stack.enter_context(stop_on_signal(stop))
        board = JobState("demo", replace(cell.task.spec, max_steps=steps))
        setup = stack.enter_context(open_operator(cell, operator, board, store=store, log=store / "operator.jsonl"))
        supervised = setup.supervision.workcell(setup.person, max_steps=steps)
        env = RobotEnv(supervised, options=observed, handover=HandoverLimits())
        stack.callback(supervised.io.stop)

        def run(session: Session) -> None:
            setup.on_request = session.request
            stack.enter_context(setup.serve())
            session.run(stopped.is_set)
            board.phase("finished", "Finished. This page can be closed.", ())

        yield TeleopSession(env, setup.supervision, setup.person, TerminalReporter(board), board, run)
