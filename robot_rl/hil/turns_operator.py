"""A person at this machine beside trainings that take turns on one robot: one set of devices and one console for all.

The robot is that of the task whose turn it is. In simulation each task has one of its own, on an arm all share it;
a hold stays, whoever's turn comes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from robot_rl.console.recorded_episodes import recorded_at
from robot_rl.console.turns_state import TurnsState, own_name, shown_name
from robot_rl.env.robot_io import Command, RobotIO, RobotState
from robot_rl.env.supervision import ARM, EVALUATING, PAUSE
from robot_rl.env.task import Workcell
from robot_rl.errors import StepOrderError
from robot_rl.hil.local_operator import LEARNS, LocalOperator
from robot_rl.hil.operator_setup import OperatorOptions, OperatorSetup, open_operator
from robot_rl.run.directory.human_effort import OPERATOR_LOG


class TurnsIO:
    """The robot of the task whose turn it is; a `RobotIO`.

    Args:
        now: That robot; it may be set to another one between two episodes.
    """

    def __init__(self, now: RobotIO) -> None:
        self.now = now

    def read(self) -> RobotState:
        """Return the newest state."""
        return self.now.read()

    def command(self, command: Command) -> None:
        """Follow `command`."""
        self.now.command(command)

    def stop(self) -> None:
        """Hold the arm where it is until the next command."""
        self.now.stop()


class _Open(NamedTuple):
    """What is open as long as the trainings are."""

    io: TurnsIO
    board: TurnsState
    setup: OperatorSetup


class TurnsOperator:
    """A person beside several trainings.

    Args:
        options: Devices and console.
        folders: The run directory of each training, by the name of its task.
        env_steps: Online steps of all together, for the console.
    """

    def __init__(self, options: OperatorOptions, folders: Mapping[str, Path], env_steps: int) -> None:
        self.options, self._folders, self.env_steps = options, dict(folders), env_steps
        self._beside = {task: TaskOperator(self, task) for task in folders}
        self._opened: _Open | None = None
        self._recorded: list[tuple[float, dict[str, Any]]] = []  # rows of episodes before a resume, and when they ended

    def beside(self, task: str) -> TaskOperator:
        """Return the person as the training of a task has them; the training that is opened first is closed last."""
        return self._beside[task]

    @contextlib.contextmanager
    def opened(self, cell: Workcell) -> Iterator[OperatorSetup]:
        """Open devices and console for the first task; for every other one they are there."""
        if self._opened is not None:
            self.board.join(cell.task.spec)
            self.setup.person = self.setup.leader(cell.task.spec)
            yield self.setup
            return
        io, board = TurnsIO(cell.io), TurnsState(cell.task.spec, self.env_steps)
        stores = {task: folder / "episodes" for task, folder in self._folders.items()}
        logs = {task: folder / OPERATOR_LOG for task, folder in self._folders.items()}
        with open_operator(replace(cell, io=io), self.options, board, store=stores, log=logs) as setup:
            setup.on_label, self._opened = self._label, _Open(io, board, setup)
            try:
                yield setup
            finally:
                self._opened = None

    def _label(self, shown: str, success: bool) -> None:
        """Pass the label of a recorded episode on to its training."""
        task, episode_id = own_name(shown)
        self._beside[task].label(episode_id, success)

    def turn(self, task: str, evaluated: str = "") -> None:
        """Have it be the turn of a task; between two episodes only.

        Args:
            task: The task.
            evaluated: How far an evaluation has come, if this is one: then nobody takes over.
        """
        one = self._beside[task]
        one.lead()
        if evaluated:
            one.phase(EVALUATING, f"It is the turn of {task}. Evaluated so far: {evaluated}.")
        else:
            one.phase("training", f"It is the turn of {task}. {LEARNS}")

    def give_robot(self, io: RobotIO) -> None:
        """Have commands go to the robot of the task whose turn it is."""
        self._open.io.now = io

    def add_recorded(self, rows: Sequence[tuple[float, dict[str, Any]]]) -> None:
        """Have the console show rows of episodes that were recorded before, each with when that was, once served."""
        self._recorded += rows

    def serve(self) -> contextlib.AbstractContextManager[None]:
        """Serve the console, with all trainings open."""
        for _, row in sorted(self._recorded, key=lambda one: one[0]):
            self.board.ended(row)
        self._recorded = []
        return self.setup.serve()

    @property
    def setup(self) -> OperatorSetup:
        """Devices, supervision and console, while a training is open."""
        return self._open.setup

    @property
    def board(self) -> TurnsState:
        """What the console shows, while a training is open."""
        return self._open.board

    @property
    def _open(self) -> _Open:
        if self._opened is None:
            raise StepOrderError("no training is open")
        return self._opened

    @property
    def io(self) -> RobotIO:
        """The robot of the task whose turn it is, which the person can hold."""
        return self.setup.supervision.io

    @property
    def held(self) -> bool:
        """Whether somebody holds the arm."""
        return bool(self.setup.supervision.holds)

    @property
    def stopped(self) -> str | None:
        """Why the arm itself has stopped, until the person lets it go on; None if it has not."""
        return next((hold.reason for hold in self.setup.supervision.holds if hold.name == ARM), None)

    def need(self, text: str) -> None:
        """Hold the arm until the person resumes, and call them: with the console, and the devices that can shake."""
        self.setup.supervision.hold(PAUSE, text)
        self.setup.call(text)

    def needless(self) -> None:
        """Show that the person is not needed any more."""
        self.setup.call("")


class TaskOperator(LocalOperator):
    """The person as the training of one task has them; an `Assistance`.

    Args:
        person: The person.
        task: Name of the task.
    """

    def __init__(self, person: TurnsOperator, task: str) -> None:
        super().__init__(person.options, None, person.env_steps)
        self._turns, self._task = person, task
        self._robot: RobotIO | None = None

    @contextlib.contextmanager
    def _opened(self, cell: Workcell) -> Iterator[OperatorSetup]:
        self._robot = cell.io
        with self._turns.opened(cell) as setup:
            yield setup

    def lead(self) -> None:
        """Have the robot, the devices and what is pressed be those of this task from now on."""
        super().lead()
        self._open.person = self._person
        if self._robot is not None:
            self._turns.give_robot(self._robot)
        self._turns.board.turn(self._task)

    def label(self, episode_id: str, success: bool) -> None:
        """Take the label of a recorded episode; from any thread."""
        self._labels.add(episode_id, success)

    def _listener(self) -> Callable[[str, int, Mapping[str, Any]], None]:
        return self._turns.board.listener(self._task)

    def _show_recorded(self, store: Path) -> None:
        """Have them shown in their order among those of all tasks."""
        times, rows = recorded_at(store), self._rows(store)
        self._turns.add_recorded([(times[row["id"]], {**row, "id": shown_name(self._task, row["id"])}) for row in rows])

    def _served(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()
