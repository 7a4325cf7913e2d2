"""A task of a robot arm as a `dm_env.Environment`, the interface of dm_control and Acme."""

from __future__ import annotations

from typing import Any

import numpy as np

from robot_rl.errors import PluginError
from robot_rl.gym.task_env import TaskEnv

try:
    import dm_env
    from dm_env import specs
except ImportError as error:
    raise PluginError("dm_env is not installed; install it with: pip install 'robot_rl[dm]'") from error


class DmEnvironment(dm_env.Environment):
    """A task of a robot arm in the terms of dm_env.

    Observations, actions and rewards are those of `TaskEnv`. Success, and a force above the limit, end an episode with
    discount 0; the step limit ends it with discount 1, as a value has to be estimated from there on.

    Args:
        task: Name of the task.
        seed: Of the episodes, which follow each other from it; None draws them from the operating system.
        settings: All other arguments of `TaskEnv`.

    Attributes:
        info: What the newest step was: `is_success`, `force_peak` [N] and the task's own measures. Empty at a start.

    Raises:
        ConfigError: if an argument is not valid.
        UnknownNameError: if there is no task or camera of that name.
    """

    def __init__(self, task: str, *, seed: int | None = None, **settings: Any) -> None:
        self._env = TaskEnv(task, **settings)
        self._random = np.random.default_rng(seed)
        self._running = False
        self.info: dict[str, Any] = {}

    def reset(self) -> dm_env.TimeStep:
        """Start an episode."""
        observation, self.info = self._env.reset(seed=int(self._random.integers(2**31)))
        self._running = True
        return dm_env.restart(observation)

    def step(self, action: np.ndarray) -> dm_env.TimeStep:
        """Play one control period; start an episode where none is running, whatever the action.

        Raises:
            ActionError: if the action is not finite, in [-1, 1] and of the right shape.
        """
        if not self._running:
            return self.reset()
        observation, reward, terminated, truncated, self.info = self._env.step(action)
        self._running = not (terminated or truncated)
        if terminated:
            return dm_env.termination(float(reward), observation)
        return (dm_env.truncation if truncated else dm_env.transition)(float(reward), observation)

    def observation_spec(self) -> dict[str, specs.Array]:
        """Return the specs of the observation's arrays, by name."""
        spaces = self._env.observation_space
        return {name: _spec(name, space) for name, space in spaces.items()}  # type: ignore[attr-defined]

    def action_spec(self) -> specs.BoundedArray:
        """Return the spec of an action, in [-1, 1]."""
        return _spec("action", self._env.action_space)

    def close(self) -> None:
        """Release the simulation; may be called twice."""
        self._env.close()


def _spec(name: str, space: Any) -> specs.BoundedArray:
    return specs.BoundedArray(space.shape, space.dtype, space.low, space.high, name)
