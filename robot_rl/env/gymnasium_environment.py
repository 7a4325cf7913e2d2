"""An adapter: any gymnasium environment with vector observations and a `Box` of actions as an `Environment`.

Time is counted in control periods from the start of the episode. The policy's actions lie in [-1, 1] and are scaled to
the box of the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.data.schema import IMAGE_PREFIX, STATE_PREFIX, Observation, Source, Step
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.env.step_info import EpisodeStart, StepInfo
from robot_rl.errors import ActionError, SpecError, StepOrderError
from robot_rl.spec import ArraySpec, validate_dict

OBSERVATION = f"{STATE_PREFIX}observation"
"""Key of an observation that is one vector and not a dict."""


def success_in_info(info: Mapping[str, Any]) -> bool:
    """Return the entry `is_success` or `success` of gymnasium's info; False without one."""
    return bool(info.get("is_success", info.get("success", False)))


class GymnasiumEnvironment:
    """A gymnasium environment as an `Environment`.

    Args:
        env: Observations are a `Box` (a vector, observed as `state/observation`) or a `Dict` of boxes whose keys begin
            with `state/` or `images/`; actions are a bounded `Box` of one dimension.
        name: Its name in the registry.
        max_steps: Steps until an episode is truncated.
        control_period: Time that a step stands for [s].
        return_range: Smallest and largest possible discounted return.
        scales: Typical magnitude of an observation's elements, by key; 1 where nothing is given.
        success: Reads from the info of a step whether the task is done.

    Raises:
        SpecError: if observations or actions are of another kind.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        name: str,
        *,
        max_steps: int,
        control_period: float = 0.1,
        return_range: tuple[float, float] = (0.0, 1.0),
        scales: Mapping[str, float | tuple[float, ...]] | None = None,
        success: Callable[[Mapping[str, Any]], bool] = success_in_info,
    ) -> None:
        box = env.action_space
        if not (isinstance(box, gymnasium.spaces.Box) and len(box.shape) == 1 and box.is_bounded()):
            raise SpecError(f"{name}: actions are {box}; valid: a bounded Box of one dimension")
        self._env, self._success = env, success
        self._middle, self._half = (box.high + box.low) / 2.0, (box.high - box.low) / 2.0
        self.environment_spec = EnvironmentSpec(
            name, max_steps, control_period, box.shape[0], return_range=return_range
        )
        self.observation_specs = _specs(env.observation_space, name, scales or {})
        self._observation: Observation = {}
        self._episode_id, self._index = "", -1  # -1: no episode is running

    def start(self, seed: int, episode_id: str, *, demonstrate: bool = False) -> EpisodeStart:
        """Start an episode; see `Environment.start`."""
        if demonstrate:
            raise StepOrderError(f"environment {self.environment_spec.name} has no operator who could demonstrate")
        observation, _ = self._env.reset(seed=seed)
        self._observation = self._validated(observation)
        self._episode_id, self._index = episode_id, 0
        return EpisodeStart(self._observation, seed, self._stamp(0))

    def advance(
        self, action: np.ndarray, *, last: bool = False, meanwhile: Callable[[], object] | None = None
    ) -> StepInfo:
        """Play one step; see `Environment.advance`."""
        if self._index < 0:
            raise StepOrderError("the episode has not started or is over; call start() first")
        chosen = self._checked(action)
        observation, reward, done, cut, info = self._env.step(self._middle + self._half * chosen)
        if meanwhile is not None:
            meanwhile()
        success, index = self._success(info), self._index
        terminated = bool(done) or success
        truncated = not terminated and (bool(cut) or last or index + 1 >= self.environment_spec.max_steps)
        step = Step(
            observation=self._observation,
            action=chosen,
            action_policy=chosen,
            source=Source.POLICY,
            reward=float(reward),
            reward_source="task",
            terminated=terminated,
            truncated=truncated,
            stamp_obs=self._stamp(index),
            stamp_action=self._stamp(index),
            episode_id=self._episode_id,
            index=index,
        )
        self._observation = self._validated(observation)
        self._index = -1 if terminated or truncated else index + 1
        failure = "ended by the environment" if terminated and not success else None
        return StepInfo(step, self._observation, self._stamp(index + 1), success, failure)

    def close(self) -> None:
        """Release the environment's resources."""
        self._index = -1
        self._env.close()

    def _stamp(self, index: int) -> int:
        return round(index * self.environment_spec.control_period * NS_PER_S)

    def _validated(self, observation: object) -> Observation:
        values = observation if isinstance(observation, Mapping) else {OBSERVATION: observation}
        return validate_dict(self.observation_specs, values, "observation")

    def _checked(self, action: object) -> np.ndarray:
        """Return the action as float32, or raise `ActionError`."""
        try:
            array = np.asarray(action, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ActionError(f"action is not an array of numbers: {error}") from error
        size = self.environment_spec.action_size
        if array.shape != (size,) or not np.abs(array).max() <= 1.0 + 1e-6:
            raise ActionError(f"action has shape {array.shape} and is {array.tolist()}; valid: ({size},), in [-1, 1]")
        return array.clip(-1.0, 1.0)


def _specs(
    space: gymnasium.Space[Any], name: str, scales: Mapping[str, float | tuple[float, ...]]
) -> dict[str, ArraySpec]:
    """Return the specs of an observation space; raises `SpecError` if it is of another kind."""
    boxes = dict(space.spaces) if isinstance(space, gymnasium.spaces.Dict) else {OBSERVATION: space}
    specs = {}
    for key, box in boxes.items():
        if not (key.startswith((STATE_PREFIX, IMAGE_PREFIX)) and isinstance(box, gymnasium.spaces.Box)):
            raise SpecError(f"{name}: observation {key} is {box}; valid: a Box called state/<what> or images/<camera>")
        dtype = box.dtype.name if key.startswith(IMAGE_PREFIX) else "float32"
        limits = (0, 255) if key.startswith(IMAGE_PREFIX) else (-np.inf, np.inf)
        specs[key] = ArraySpec(box.shape, dtype, low=limits[0], high=limits[1], scale=scales.get(key, 1.0))
    return specs
