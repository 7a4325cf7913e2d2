"""Our tasks in the form in which LeRobot loads environments of others: `make_env(n_envs, use_async_envs)` of a file.

Observations have LeRobot's names: `agent_pos`, all of the state in the order in which `robot-rl data export` writes
`observation.state`, and `pixels`, frames by camera. So a policy that LeRobot trained on an export acts here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from robot_rl.data.schema import IMAGE_PREFIX, STATE_PREFIX
from robot_rl.errors import ConfigError
from robot_rl.gym.task_env import TaskEnv


class LeRobotEnv(gymnasium.ObservationWrapper[dict[str, Any], np.ndarray, dict[str, np.ndarray]]):
    """A task of a robot arm with observations of LeRobot's names.

    Args:
        task: Name of the task.
        settings: All other arguments of `TaskEnv`; without them it observes pixels and can be rendered.

    Attributes:
        task: Name of the task.
        task_description: The task in one sentence.

    Raises:
        ConfigError: if an argument is not valid.
        UnknownNameError: if there is no task or camera of that name.
    """

    def __init__(self, task: str, **settings: Any) -> None:
        env = TaskEnv(task, **{"obs": "pixels", "render_mode": "rgb_array", **settings})
        super().__init__(env)
        self.task, self.task_description = task, env.task_description
        self._max_episode_steps = env.max_episode_steps  # LeRobot asks for it under this name
        parts = dict(env.observation_space)  # type: ignore[call-overload]
        self._state = sorted(key for key in parts if key.startswith(STATE_PREFIX))
        self._cameras = {key.removeprefix(IMAGE_PREFIX): key for key in sorted(parts) if key.startswith(IMAGE_PREFIX)}
        size = sum(int(np.prod(parts[key].shape)) for key in self._state)
        made: dict[str, Any] = {"agent_pos": spaces.Box(-np.inf, np.inf, (size,), np.float32)}
        if self._cameras:
            made["pixels"] = spaces.Dict({camera: parts[key] for camera, key in self._cameras.items()})
        self.observation_space = spaces.Dict(made)

    def observation(self, observation: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return an observation with LeRobot's names."""
        made: dict[str, Any] = {"agent_pos": np.concatenate([observation[key].ravel() for key in self._state])}
        if self._cameras:
            made["pixels"] = {camera: observation[key] for camera, key in self._cameras.items()}
        return made


def make_vector(
    task: str, n_envs: int = 1, use_async_envs: bool = False, **settings: Any
) -> dict[str, dict[int, VectorEnv[Any, Any, Any]]]:
    """Make what LeRobot's `make_env` returns: for each suite, here the task, a vector of environments by number.

    Args:
        task: Name of the task.
        n_envs: Environments side by side.
        use_async_envs: Whether each has a process of its own.
        settings: All other arguments of `TaskEnv`.

    Raises:
        ConfigError: if an argument is not valid.
        UnknownNameError: if there is no task or camera of that name.
    """
    if n_envs < 1:
        raise ConfigError(f"n_envs={n_envs}: expected at least 1")
    makers = [partial(LeRobotEnv, task, **settings)] * n_envs
    kind = partial(AsyncVectorEnv, context="spawn") if use_async_envs else SyncVectorEnv
    return {task: {0: kind(makers, autoreset_mode=AutoresetMode.SAME_STEP)}}
