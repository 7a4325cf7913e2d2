"""The contract between a training and its learner, in this process or in another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from robot_rl.data.replay.hindsight_memory import Relabelled
from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.perception import Perception


class LearnerPort(Protocol):
    """The learner as a training uses it: it receives demonstrations and steps, and learns in `catch_up`."""

    perception: Perception

    @property
    def policy(self) -> Policy:
        """The policy that acts; its parameters change only inside `catch_up`."""
        ...

    @property
    def updates(self) -> int:
        """Updates so far."""
        ...

    @property
    def update_to_data(self) -> float:
        """Updates per online step since learning started, as measured."""
        ...

    @property
    def offline_updates(self) -> int:
        """Updates on the demonstrations alone, before the first online step."""
        ...

    @property
    def value(self) -> float | None:
        """Return that the critics expect from a newest online observation on; None where that is not known."""
        ...

    def pretrain(self, updates: int) -> dict[str, float]:
        """Make updates on the demonstrations alone, and wait for them; return mean logs."""
        ...

    def add_demonstration(self, episode: Episode) -> None:
        """Add a demonstration to the memory."""
        ...

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Receive the start of an online episode."""
        ...

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Receive an online step."""
        ...

    def on_end(self, episode: Episode, result: object) -> None:
        """Receive the end of an online episode."""
        ...

    def label_episode(self, episode_id: str, success: bool, since: int = 0) -> None:
        """Label an episode that has ended, also a demonstration, as a success or a failure.

        Args:
            episode_id: Of the episode.
            success: Whether it succeeded.
            since: Steps after which it had succeeded; 0: in its last one.
        """
        ...

    def reward_episode(self, episode_id: str, closeness: np.ndarray) -> None:
        """Replace the rewards of a demonstration, or of an online episode that has ended; its end stays as it is.

        A step is worth (1 - gamma) c, in units of a success; a step that was judged a success keeps its reward.

        Args:
            episode_id: Of the episode.
            closeness: c, how close the observation after each step is to the goal, in [0, 1]; shape (T,).
        """
        ...

    def relabelled(self, rows: Relabelled) -> None:
        """Receive transitions derived from an online episode, with other goals."""
        ...

    def catch_up(self) -> dict[str, float] | None:
        """Let the learner work, after every step; return logs now and then."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next update depends on."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        ...


def send_record(learner: LearnerPort, episode: Episode, after_step: Callable[[], object]) -> None:
    """Send a learner an episode that was played before, step by step; `after_step` is called after each."""
    learner.on_start(episode.episode_id, episode.seen(0))
    for row in range(len(episode)):
        learner.on_step(episode.step(row), episode.seen(row + 1))
        after_step()
    learner.on_end(episode, None)
