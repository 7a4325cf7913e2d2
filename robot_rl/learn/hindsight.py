"""Hindsight experience replay (Andrychowicz et al. 2017): what an episode achieved counts as what it had wanted.

Each step is learned from again with goals that the same episode achieved after it, strategy `future` of the paper
(section 4.5). The rewards are the environment's own, computed where it lives, once per episode. What comes of it is
derived and goes to the learner's memory alone; recorded episodes stay as they were.
"""

from __future__ import annotations

import numpy as np

from robot_rl.config.components import TrainConfig
from robot_rl.data.replay.hindsight_memory import Relabelled
from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.env.environment import Environment, SupportsGoals
from robot_rl.errors import ConfigError
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.learn.perception import Perception
from robot_rl.seeding import Purpose, episode_seed


class HindsightRelabeller:
    """An observer that derives transitions from each episode; `deliver` sends them.

    Args:
        env: Judges goals.
        perception: Shared with the actor.
        config: The run's configuration, with `replay.hindsight_goals` for each step.
    """

    def __init__(self, env: SupportsGoals, perception: Perception, config: TrainConfig) -> None:
        self._env, self._perception, self._config = env, perception, config
        self._newest: Episode | None = None

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Do nothing: goals are known at the end."""

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Do nothing: goals are known at the end."""

    def on_end(self, episode: Episode, result: object) -> None:
        """Remember the episode for `deliver`."""
        del result
        self._newest = episode

    def deliver(self, learner: LearnerPort) -> None:
        """Send what follows from the newest episode, once; after the updates for its last step."""
        episode, self._newest = self._newest, None
        if episode is not None:
            learner.relabelled(self.relabel(episode))

    def relabel(self, episode: Episode) -> Relabelled:
        """Derive transitions from an episode of T steps: k of each step, T k at most.

        Left out are those whose goal was met before the step, where that would have ended the episode: such steps are
        never played, and there are many as long as nothing moves.
        The goals of step t are what rows t + 1 ... T achieved, drawn uniformly, from the seed of the episode's number.

        Raises:
            EnvironmentFailedError: if the environment cannot judge them.
        """
        achieved_key, desired_key = self._env.goal_keys or ("", "")
        steps, config = len(episode), self._config
        number = int(episode.episode_id.rpartition("-")[2])
        rng = np.random.default_rng(episode_seed(Purpose.HINDSIGHT, config.seed, number))
        at = np.repeat(np.arange(steps), config.replay.hindsight_goals)
        later = at + 1 + (rng.random(len(at)) * (steps - at)).astype(np.int64)
        achieved = episode.observations[achieved_key]
        goal = achieved[later]
        # In one request: what each step led to, and where it began.
        both = np.concatenate([achieved[at + 1], achieved[at]]), np.concatenate([goal, goal])
        (reward, _), (terminated, over) = (column.reshape(2, -1) for column in self._env.judge_goals(*both))
        at, goal, reward, terminated = (column[~over] for column in (at, goal, reward, terminated))
        if episode.terminated[-1] and not episode.facts.success:
            terminated = terminated | (at == steps - 1)  # it failed, whatever was wanted
        columns = {key: column for key, column in episode.observations.items() if key != desired_key}

        def seen(rows: np.ndarray) -> np.ndarray:
            """Return what networks see at these rows, with the other goals."""
            parts = []
            for age in config.replay.history:
                past = np.maximum(rows - age, 0)
                chosen = {key: column[past] for key, column in columns.items()}
                parts.append(self._perception.states({**chosen, desired_key: goal}))
            return np.concatenate(parts, axis=1)

        return Relabelled(seen(at), episode.action[at], reward.astype(np.float32), terminated, seen(at + 1))


def make_relabeller(env: Environment, perception: Perception, config: TrainConfig) -> HindsightRelabeller | None:
    """Return the relabeller of a run; None without `replay.hindsight_goals`.

    Raises:
        ConfigError: if the environment has no goals.
    """
    if config.replay.hindsight_goals == 0:
        return None
    if not isinstance(env, SupportsGoals) or env.goal_keys is None:
        raise ConfigError(
            f"replay.hindsight_goals={config.replay.hindsight_goals}: {env.environment_spec.name} has no goals or "
            "hides them; it needs observations with achieved_goal and desired_goal, and compute_reward; set it to 0"
        )
    return HindsightRelabeller(env, perception, config)
