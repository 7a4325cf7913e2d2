"""Environments of dm_control in gymnasium's terms. `guest.py` loads this file, so it imports nothing of ours."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class DmControlEnv(gymnasium.Env[Any, Any]):
    """An environment of dm_control in gymnasium's terms; a time limit truncates, everything else terminates."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012  (gymnasium declares it as a plain class attribute)

    def __init__(self, env: Any, frames: bool) -> None:
        self._env, self.dt = env, float(env.control_timestep())
        self.render_mode = "rgb_array" if frames else None
        action = env.action_spec()
        self.action_space = gymnasium.spaces.Box(action.minimum, action.maximum, action.shape, np.float64)
        self.observation_space = gymnasium.spaces.Dict(
            {key: gymnasium.spaces.Box(-np.inf, np.inf, spec.shape) for key, spec in env.observation_spec().items()}
        )
        seconds, steps = getattr(env, "_time_limit", None), getattr(env, "_step_limit", None)
        limit = steps if steps is not None else seconds / self.dt if seconds is not None else np.inf
        self.max_episode_steps = round(limit) if np.isfinite(limit) else None

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the task's own source of randomness is seeded."""
        source = self._env.random_state if hasattr(self._env, "random_state") else self._env.task.random
        source.seed(seed)
        return dict(self._env.reset().observation), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Play one step."""
        step = self._env.step(action)
        ended = step.last()
        return dict(step.observation), float(step.reward), ended and step.discount == 0, ended and step.discount > 0, {}

    def render(self) -> np.ndarray:
        """Return a picture by the first camera."""
        return np.asarray(self._env.physics.render(height=256, width=256, camera_id=0))

    def close(self) -> None:
        """Release the physics."""
        self._env.close()
