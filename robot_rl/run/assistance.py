"""Interfaces of a training: the operator beside it (`Assistance`) and labels that come later (`LabelSource`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.episode_observer import Observer
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import Workcell, WorkcellOptions
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.run.training_record import TrainingRecord


class Assistance(Protocol):
    """A human operator beside a training. `robot_rl.hil` implements it, for this machine and for another process."""

    def environment(
        self, cell: Workcell, options: WorkcellOptions, *, interventions: bool, overrule_s: float
    ) -> AbstractContextManager[RobotEnv]:
        """Open the environment that the operator supervises; it is closed on exit.

        Args:
            cell: The robot and its task, with the reward sources.
            options: What is observed.
            interventions: The operator may take over.
            overrule_s: How long a classifier's success waits for the operator to overrule it [s].
        """
        ...

    @property
    def demonstrator(self) -> RobotEnv:
        """The environment in which demonstrations are recorded."""
        ...

    @property
    def observers(self) -> Sequence[Observer]:
        """Observers of every online step."""
        ...

    def may_start(self) -> bool:
        """Return whether the next episode may start; wait a moment while the arm is held."""
        ...

    def exchange(self, learner: LearnerPort) -> None:
        """Send the operator's new labels of recorded episodes to the learner, and show what it expects; never wait."""
        ...

    def session(self, run: Path, metrics: MetricsWriter) -> AbstractContextManager[None]:
        """Let the operator take part from now on, e.g. serve the console; on exit, summarize what the operator did."""
        ...

    def evaluation(self) -> AbstractContextManager[None]:
        """Let the operator take part in an evaluation apart from any training, e.g. serve the console."""
        ...

    def call(self, text: str) -> None:
        """Show the operator that the policy needs help, and why; an empty text: no more."""
        ...

    def phase(self, name: str, text: str) -> None:
        """Show the operator a new phase of the training; in `EVALUATING` nobody takes over."""
        ...


class LabelSource(Observer, Protocol):
    """Labels that reward the online episodes of a training after their end."""

    def begin(self, store: EpisodeStore, learner: LearnerPort, record: TrainingRecord) -> None:
        """Label the online episodes of a store for a learner from now on."""
        ...

    def deliver(self, env_steps: int) -> None:
        """Send the labels that have arrived to the learner; never wait."""
        ...

    def wait(self, env_steps: int, stop: Callable[[], bool]) -> None:
        """Wait between episodes for the label of the last one, where time stands still meanwhile."""
        ...
