"""What a training knows of who is beside it: a person who helps, and labels that judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.learn.actor import Observer
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.system.progress import Progress


class Assistance(Protocol):
    """What training knows of a person beside it."""

    @property
    def demonstrator(self) -> RobotEnv:
        """Where demonstrations are made; in the training's own environment the person is the operator."""
        ...

    @property
    def watch(self) -> Sequence[Observer]:
        """Who is told of every online step."""
        ...

    def wait(self) -> bool:
        """Waits a moment while somebody holds the arm; whether the next episode may begin."""
        ...

    def take(self, learner: LearnerPort) -> None:
        """Tells the learner what the person said of episodes in hindsight; never waits."""
        ...


class Labels(Observer, Protocol):
    """What training knows of labels that judge its online episodes."""

    def begin(self, store: EpisodeStore, learner: LearnerPort, metrics: MetricsWriter, progress: Progress) -> None:
        """Has episodes of the store labelled for the learner from now on."""
        ...

    def take(self, env_steps: int) -> None:
        """Hands the labels that have come to the learner; never waits."""
        ...

    def wait(self, env_steps: int, stop: Callable[[], bool]) -> None:
        """Between episodes: may wait for the last one's label, where that holds up nothing."""
        ...
