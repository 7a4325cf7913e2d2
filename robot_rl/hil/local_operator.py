"""A human operator beside a training at this machine: takes over from the policy, labels episodes, holds the arm.

In an evaluation nobody takes over; where a person judges, the buttons end its episodes.

The scripted operator of the task still records the demonstrations.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.console.job_state import JobState
from robot_rl.console.recorded_episodes import recorded_rows
from robot_rl.env.episode_observer import Observer
from robot_rl.env.handover import HandoverLimits
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.supervision import EVALUATING, PAUSE
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions
from robot_rl.errors import StepOrderError
from robot_rl.hil.interventions import draw_interventions
from robot_rl.hil.operator_setup import OperatorOptions, OperatorSetup, open_operator, viewed_workcell
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.human_effort import OPERATOR_LOG
from robot_rl.run.directory.metrics import MetricsWriter, read_metrics
from robot_rl.run.human_labels import HumanLabels

JUDGE = "End each episode by Success or Failure; without a verdict it is no success."
LEARNS = "The policy acts and learns. Move to take over; let go to hand back."
LOST_EPISODES = 5
"""Simulated episodes in a row that may be lost because this machine stands still."""


@dataclass
class ButtonWatch:
    """Reads the devices at each step in which nobody may lead, for their buttons; a judge that changes no outcome."""

    read: Callable[[], object] = lambda: None

    def begin(self) -> None:
        """Do nothing."""

    def judge(self, outcome: Outcome, observation: Mapping[str, np.ndarray], spec: TaskSpec) -> Outcome:
        """Read them; what is pressed counts for this step."""
        del observation, spec
        self.read()
        return outcome


class LocalOperator:
    """An operator with devices, or the console, at this machine; an `Assistance`.

    Args:
        options: Devices and console.
        folder: The run directory, or another one for the record of what the operator does; None: it is not recorded.
        env_steps: Online steps of the training, for the console.
    """

    def __init__(self, options: OperatorOptions, folder: Path | None, env_steps: int) -> None:
        self._options, self._folder, self._env_steps = options, folder, env_steps
        self._labels = HumanLabels()
        self._setup: OperatorSetup | None = None
        self._demonstrator: RobotEnv | None = None
        self._overrule_s = 0.0
        self._person_resets = self._requested = False  # whether a ready scene is needed, and was requested
        self._verdicts = ""  # what a person has to judge, for them; empty: nothing

    @contextlib.contextmanager
    def environment(
        self, cell: Workcell, options: WorkcellOptions, *, interventions: bool, overrule_s: float
    ) -> Iterator[RobotEnv]:
        """Open devices, supervision and environment; see `Assistance.environment`. The operator may always take over.

        Raises:
            DeviceError: if a device cannot be used.
            ConsoleError: if the console's certificate cannot be used.
        """
        del interventions
        self._person_resets, self._verdicts = cell.person_resets, _verdicts_of(cell)
        with contextlib.ExitStack() as stack:
            stack.callback(cell.close)
            stack.callback(cell.io.stop)
            buttons = ButtonWatch()
            cell = replace(cell, judges=(*cell.judges, buttons))
            self._setup = stack.enter_context(self._opened(cell))
            self._person, self._overrule_s = self._setup.person, overrule_s
            self.lead()
            supervision, watched = self._setup.supervision, self._setup.watched(cell)
            script = supervision.workcell(cell.operator, cell.operator_source, cell=watched)
            self._demonstrator = RobotEnv(script, options=options)
            human = supervision.workcell(self._person, cell=watched)
            env = RobotEnv(human, interventions=True, options=options, handover=HandoverLimits())
            buttons.read = lambda: env.interventions or self._person.watch()
            yield env

    @contextlib.contextmanager
    def _opened(self, cell: Workcell) -> Iterator[OperatorSetup]:
        """Open devices and supervision of a workcell."""
        board = JobState("training", cell.task.spec, self._env_steps)
        kept = {} if self._folder is None else {"store": self._folder / "episodes", "log": self._folder / OPERATOR_LOG}
        with open_operator(cell, self._options, board, **kept) as setup:
            setup.on_label = self._labels.add
            yield setup

    def lead(self) -> None:
        """Have the devices, and what is pressed, count for this task from now on."""
        supervision = self._open.supervision
        supervision.time_to_overrule, supervision.listen = self._overrule_s, self._person.watch

    @property
    def demonstrator(self) -> RobotEnv:
        """The environment in which the task's scripted operator demonstrates.

        Raises:
            StepOrderError: before `environment`.
        """
        if self._demonstrator is None:
            raise StepOrderError("there is no environment yet")
        return self._demonstrator

    @property
    def observers(self) -> Sequence[Observer]:
        """The state that the console shows."""
        return [self._open.board]

    def may_start(self) -> bool:
        """Return whether the next episode may start; wait a moment while somebody holds the arm.

        Where a person makes the scene ready, the arm is held before each episode until the person resumes.
        """
        self._person.watch()
        supervision = self._open.supervision
        if self._person_resets and not self._requested:
            self._requested = True
            supervision.hold(PAUSE, "make the scene ready, then press Resume, or `start` on the device")
        if not supervision.wait():
            return False
        self._requested = False
        return True

    def exchange(self, learner: LearnerPort) -> None:
        """Send the operator's new labels of recorded episodes to the learner, and show what it expects; never wait."""
        self._labels.deliver(learner)
        if (value := learner.value) is not None:
            self._open.board.measure("value", round(value, 4))

    @contextlib.contextmanager
    def session(self, run: Path, metrics: MetricsWriter) -> Iterator[None]:
        """Serve the console with all metrics, also those before a resume; then draw the interventions."""
        take = self._listener()
        for record in read_metrics(metrics.path):
            take(record["kind"], record["env_step"], record)
        self._show_recorded(run / "episodes")
        metrics.listeners.append(take)
        self.phase("training", LEARNS)
        try:
            with draw_interventions(run), self._served():
                yield
        finally:
            metrics.listeners.remove(take)

    def _listener(self) -> Callable[[str, int, Mapping[str, Any]], None]:
        """Return what shows the metrics of this training."""
        return self._open.board.metric

    def _show_recorded(self, store: Path) -> None:
        """Show the episodes that were recorded before."""
        for row in self._rows(store):
            self._open.board.ended(row)

    def _rows(self, store: Path) -> list[dict[str, Any]]:
        """Return the rows of the newest episodes of a store."""
        return recorded_rows(store, self.demonstrator.spec_task.control_period)

    def _served(self) -> contextlib.AbstractContextManager[None]:
        """Serve the console."""
        return self._open.serve()

    @contextlib.contextmanager
    def evaluation(self) -> Iterator[None]:
        """Serve the console for an evaluation alone."""
        with self._open.serve():
            yield
            self.phase("finished", "Finished. This page can be closed.")

    def call(self, text: str) -> None:
        """Show in the console that the policy needs help, which it sounds, and shake; an empty text: no more."""
        self._open.call(text)

    def phase(self, name: str, text: str) -> None:
        """Show a new phase in the console; in an evaluation its buttons are those of a person who judges."""
        if name == EVALUATING and self._verdicts:
            self._open.board.phase(name, f"{text} {self._verdicts}", ("success", "failure"))
        else:
            self._open.board.phase(name, text, ())

    @property
    def _open(self) -> OperatorSetup:
        if self._setup is None:
            raise StepOrderError("there is no environment yet")
        return self._setup


def _verdicts_of(cell: Workcell) -> str:
    """Return what a person has to judge in an episode, for them; empty where nothing is."""
    told = []
    if cell.person_stages:
        told.append(f"Press Success when this is so: {', '.join(cell.person_stages)}.")
    if cell.person_judges:
        told.append(JUDGE)
    return " ".join(told)


def local_deployment(
    options: OperatorOptions, folder: Path | None, env_steps: int = 0, place: Deployment | None = None
) -> Deployment:
    """Return a deployment in this process, in real time, with a human operator beside the training or evaluation.

    Args:
        options: Devices and console.
        folder: The run directory, or another one for the record of what the operator does; None: it is not recorded.
        env_steps: Online steps of the training; 0 in an evaluation.
        place: Where the robot is; None is a simulation with live views.
    """
    return replace(place or simulated_place(), assistance=LocalOperator(options, folder, env_steps))


def simulated_place() -> Deployment:
    """Return a deployment on a simulated arm in real time, with live views for a person."""
    return Deployment(viewed_workcell, repeatable=False, lost_episodes=LOST_EPISODES)
