"""What a session with a person needs around it: supervised environment, devices and console, Ctrl-C, and who is told.

It does not know what the session records; `person_demo.py` and `frame_session.py` do.

What a person asks of a session, kept from the moment of asking until the control loop takes it.
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
from robot_rl.hil.operator_setup import OperatorOptions, operated
from robot_rl.system.process import stop_on_signal
from robot_rl.teleop.device_operator import DeviceOperator

REQUESTS = ("start", "stop", "discard", "redo", "success", "failure", "finish")
"""All that can be asked for; which of them fit depends on the moment."""


class Requests:
    """Requests in the order in which they were made. Any thread may ask; the control loop takes.

    Args:
        remark: Told, in the control loop, of each request that does not fit the moment.
    """

    def __init__(self, remark: Callable[[str], object]) -> None:
        self._remark = remark
        self._waiting: SimpleQueue[str] = SimpleQueue()

    def __bool__(self) -> bool:
        """Whether any waits to be taken."""
        return not self._waiting.empty()

    def ask(self, name: str) -> None:
        """Asks for one of `REQUESTS`.

        Raises:
            UnknownNameError: if there is no such request.
        """
        if name not in REQUESTS:
            raise UnknownNameError("request", name, REQUESTS)
        self._waiting.put(name)

    def take(self, possible: tuple[str, ...]) -> str | None:
        """The next request that fits the moment, or None; one that does not is dropped, and that is said."""
        try:
            while (name := self._waiting.get_nowait()) not in possible:
                self._remark(f"cannot {name} now; possible: {', '.join(possible)}")
        except Empty:
            return None
        return name


PATIENCE = 3
"""How many times the task's step limit a person may take."""


class TerminalReporter:
    """Tells the board, and the terminal in a line each.

    Args:
        board: What the console shows.
    """

    def __init__(self, board: JobState) -> None:
        self._board = board

    def phase(self, name: str, text: str, requests: tuple[str, ...]) -> None:
        """A new phase."""
        self._board.phase(name, text, requests)
        print(text, file=sys.stderr)

    def kept(self, count: int, wanted: int) -> None:
        """How many demonstrations there are."""
        self._board.kept(count, wanted)

    def remark(self, text: str) -> None:
        """Something worth telling."""
        self._board.remark(text)
        print(text, file=sys.stderr)


class Session(Protocol):
    """What a person takes part in."""

    def request(self, name: str) -> None:
        """Asks for something, from any thread."""
        ...

    def run(self, stop: Callable[[], bool]) -> None:
        """Until it is finished, or `stop` says so."""
        ...


@dataclass(frozen=True)
class InPerson:
    """Where a session with a person takes place.

    Attributes:
        env: The supervised environment with the person as its operator.
        supervision: Of that environment.
        person: Who leads.
        reporter: Tells the console and the terminal.
        board: What the console shows; an observer of every step.
        run: Runs a session; the console stays open until its block ends, so that pages learn that it is finished.
    """

    env: RobotEnv
    supervision: Supervision
    person: DeviceOperator
    reporter: TerminalReporter
    board: JobState
    run: Callable[[Session], None]


@contextlib.contextmanager
def in_person(cell: Workcell, observed: WorkcellOptions, operator: OperatorOptions, store: Path) -> Iterator[InPerson]:
    """Puts a person beside a workcell for one session; the first Ctrl-C ends that in order.

    Args:
        cell: The robot and its task, with whoever else judges.
        observed: What is recorded of the robot.
        operator: How the person takes part.
        store: Where the episodes go, and the record of what people did and said.
    """
    steps, stopped = PATIENCE * cell.task.spec.max_steps, threading.Event()

    def stop() -> None:
        stopped.set()
        print("stopping; what was recorded is kept", file=sys.stderr, flush=True)

    with contextlib.ExitStack() as stack:
        stack.enter_context(stop_on_signal(stop))
        board = JobState("demo", replace(cell.task.spec, max_steps=steps))
        operation = stack.enter_context(operated(cell, operator, board, store=store, log=store / "operator.jsonl"))
        supervised = operation.supervision.workcell(operation.person, max_steps=steps)
        env = RobotEnv(supervised, options=observed, handover=HandoverLimits())
        stack.callback(supervised.io.stop)

        def run(session: Session) -> None:
            operation.request = session.request
            stack.enter_context(operation.serve())
            session.run(stopped.is_set)
            board.phase("finished", "Finished. This page can be closed.", ())

        yield InPerson(env, operation.supervision, operation.person, TerminalReporter(board), board, run)
