"""The learner in the process of the actor: it encodes the observations itself and learns in turn with the actor."""

from __future__ import annotations

from robot_rl.config.components import TrainConfig
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.learn.learner import Learner
from robot_rl.learn.perception import Perception


class LocalLearner(Learner):
    """A `LearnerPort` that learns inside `catch_up`.

    Args:
        task: Facts of the environment.
        perception: Shared with the actor, so that each observation is encoded once.
        config: Configuration of the run.
    """

    def __init__(self, task: EnvironmentSpec, perception: Perception, config: TrainConfig) -> None:
        super().__init__(task, perception.spec, config)
        self.perception = perception

    def add_demonstration(self, episode: Episode) -> None:
        """Add a demonstration to the memory."""
        self.demos.add_episode(episode, self.perception.of_rows(episode.observed))

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Start an online episode."""
        self.begin(self.perception.first(observation), episode_id)

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Receive an online step."""
        self.append(Transition.of(step), self.perception(next_observation))

    def on_end(self, episode: Episode, result: object) -> None:
        """Do nothing: all steps of the episode have been received."""
