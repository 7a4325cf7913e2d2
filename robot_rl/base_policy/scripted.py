"""The scripted operator of a task, or the expert of an environment, as a base."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_rl.base_policy.contract import ActionChunk, BasePolicy, BaseSetup, BaseSpec, Stamped
from robot_rl.data.schema import OPERATOR_SOURCES, Episode
from robot_rl.env.environment import Environment, SupportsAdvice
from robot_rl.errors import BasePolicyError


class ScriptedPolicy(BasePolicy):
    """Proposes what the operator would do, who looks at more than the observations. It does not intervene beside it.

    In a demonstration it proposes what was demonstrated.
    """

    def __init__(self, setup: BaseSetup) -> None:
        task = setup.task
        self.name, self._task = setup.name, task.name
        self.spec = BaseSpec({}, task.action_size, task.grippers, task.control_period, horizon=1, arms=task.arms)
        self._environment: SupportsAdvice | None = None

    @property
    def identity(self) -> str:
        """The task whose operator it is."""
        return f"scripted operator of {self._task}"

    def begin(self, seed: int, environment: Environment | None) -> None:
        """Ask the operator of this environment from now on.

        Raises:
            ConfigError: if it has none that is a script.
            BasePolicyError: if it has none that could be asked.
        """
        if not isinstance(environment, SupportsAdvice):
            raise BasePolicyError(
                f"base {self.name}: there is no operator who could be asked here; choose another base"
            )
        environment.begin_advice(seed)
        self._environment = environment

    def plan(self, history: Sequence[Stamped]) -> ActionChunk:
        """Return the operator's next action."""
        action = None if self._environment is None else self._environment.advise()
        if action is None:
            raise BasePolicyError(f"base {self.name}: the operator has no action")
        return ActionChunk(np.asarray(action, np.float32)[None], np.array([history[-1].stamp]))

    def recorded(self, episode: Episode) -> np.ndarray:
        """Return the actions of an operator in a recorded episode, zeros elsewhere; the last one twice."""
        led = np.isin(episode.source, OPERATOR_SOURCES)[:, None]
        actions = np.where(led, episode.action, 0.0)
        return np.concatenate([actions, actions[-1:]])
