"""What whoever trains needs of a learner, in this process or in another. It knows no learner, only the promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.perception import Perception


class LearnerPort(Protocol):
    """What training needs of a learner, in this process or in another."""

    perception: Perception

    @property
    def policy(self) -> Policy:
        """The policy that acts; its parameters change only inside `catch_up`."""
        ...

    @property
    def updates(self) -> int:
        """Critic updates so far."""
        ...

    @property
    def update_to_data(self) -> float:
        """Critic updates per online step since learning started, as measured."""
        ...

    @property
    def offline_updates(self) -> int:
        """Critic updates on the demonstrations alone, before the first online step."""
        ...

    def pretrain(self, updates: int) -> dict[str, float]:
        """Makes so many updates on the demonstrations alone, and waits for them; returns mean logs."""
        ...

    def add_demonstration(self, episode: Episode) -> None:
        """Remembers a demonstration."""
        ...

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """An online episode started."""
        ...

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """An online step was taken."""
        ...

    def on_end(self, episode: Episode, result: object) -> None:
        """An online episode ended."""
        ...

    def label_episode(self, episode_id: str, success: bool, since: int = 0) -> None:
        """A label says whether an online episode that has ended succeeded, and after how many steps; 0: in its last."""
        ...

    def catch_up(self) -> dict[str, float] | None:
        """Lets the learner work; returns logs now and then. Called after every step."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Everything that the learner's next update depends on."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from what `state_dict` gave."""
        ...
