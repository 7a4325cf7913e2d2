"""An adapter: any gymnasium environment as an `Environment`.

Time is counted in control periods from the start of the episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

import gymnasium
import numpy as np

from robot_rl.adapters.action_layout import make_action_layout
from robot_rl.adapters.guest import SUCCESS_KEYS, Guest
from robot_rl.adapters.guest_messages import GuestError
from robot_rl.adapters.observation_layout import LARGEST_NUMBER, ObservationLayout
from robot_rl.clock import NS_PER_S
from robot_rl.config.environment import EnvironmentConfig
from robot_rl.data.schema import STATE_PREFIX, Observation, Source, Step
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.env.step_info import EpisodeStart, StepInfo
from robot_rl.errors import ConfigError, EnvironmentFailedError, RobotRLError, SpecError, StepOrderError
from robot_rl.spec import ArraySpec

PERIOD = 0.1
"""Control period of an environment that declares none [s]."""
PERIODS = (1e-6, 1e5)
"""Shortest and longest control period [s]: stamps are whole nanoseconds of 64 bits."""

_T = TypeVar("_T")


class GuestPort(Protocol):
    """A guest, in this interpreter or in another; see `Guest`."""

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Space of the observations."""
        ...

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Space of the actions."""
        ...

    def facts(self) -> dict[str, Any]:
        """Play one step, and return what it shows and what the environment declares; see `Guest.facts`."""
        ...

    def reset(self, seed: int) -> Any:
        """Start an episode; return its first observation."""
        ...

    def step(self, action: Any) -> tuple[Any, float, bool, bool, bool]:
        """Play one step; return observation, reward, terminated, truncated, and whether the task was done in it."""
        ...

    def frame(self) -> np.ndarray:
        """Return a picture of the scene, (height, width, 3), uint8."""
        ...

    def expert(self) -> Any:
        """Return the expert's action for the newest observation."""
        ...

    def judge(self, achieved: np.ndarray, desired: np.ndarray) -> tuple[np.ndarray, ...]:
        """Judge what was achieved by goals; see `Guest.judge`."""
        ...

    def close(self) -> None:
        """Release its resources; may be called twice."""
        ...


class GymnasiumEnvironment:
    """A gymnasium environment as an `Environment`; its expert, where there is one, is the operator.

    Args:
        env: The environment, or a guest. `ObservationLayout` and `make_action_layout` name the spaces that are
            supported.
        name: Its name in the registry.
        config: What counts in it, and how it is scaled.
        scales: Typical magnitude of an observation's elements, by key, instead of `config.scaling`.
        cameras: Pictures to observe.
        image_size: Height and width of the observed pictures [px].

    Raises:
        SpecError: if observations or actions are of a kind that is not supported.
        EnvironmentFailedError: if it has no spaces, or fails in its first step.
        ConfigError: if the environment declares no step limit or no usable control period, and `config` neither.
        UnknownNameError: if there is no camera of that name.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any] | GuestPort,
        name: str,
        config: EnvironmentConfig | None = None,
        *,
        scales: Mapping[str, float | tuple[float, ...]] | None = None,
        cameras: tuple[str, ...] = (),
        image_size: tuple[int, int] = (128, 128),
    ) -> None:
        self._config = config = config or EnvironmentConfig()
        self._guest: GuestPort = (
            Guest(env, success=config.success, repeat=config.action_repeat) if isinstance(env, gymnasium.Env) else env
        )
        self._name = name
        observation_space, action_space = self._ask("its spaces", self._spaces)
        self._actions = make_action_layout(action_space, name, discrete_gripper=config.discrete_gripper)
        facts = self._ask("its first step", self._guest.facts)
        self._layout = ObservationLayout(
            observation_space,
            name,
            cameras=cameras,
            image_size=image_size,
            scaling=config.scaling,
            scales=scales,
            hidden=config.hidden,
            draws=facts["frames"],
        )
        max_steps = config.max_steps or facts["steps"]
        if not max_steps:
            raise ConfigError(f"{name} declares no step limit: its episodes might never end; set environment.max_steps")
        if config.action_repeat > 1 and max_steps == 1:
            raise ConfigError(
                f"environment.action_repeat={config.action_repeat}: an episode of {name} would be one step; valid: a "
                "small part of its step limit"
            )
        self._sparse = config.reward == "success"
        if (self._sparse or config.success) and not facts["success"]:
            known = f"its entries are {', '.join(facts['info']) or 'none'}"
            raise ConfigError(
                f"{name}: the info of its first step has no entry {config.success or ' or '.join(SUCCESS_KEYS)}, by "
                f"which the task would be done; {known}; set environment.success, or wrap it so that each step has one"
            )
        self._success_ends = config.success_ends == "always" or (config.success_ends == "auto" and self._sparse)
        period = config.control_period * config.action_repeat or facts["period"] or PERIOD * config.action_repeat
        if not PERIODS[0] <= period <= PERIODS[1]:
            raise ConfigError(
                f"{name}: {period:g} s from step to step, by environment.control_period or else its `dt` or "
                f"`render_fps`; set environment.control_period so that it is {PERIODS[0]:g} to {PERIODS[1]:g} s"
            )
        self.environment_spec = EnvironmentSpec(
            name,
            max_steps,
            period,
            self._actions.size,
            choices=self._actions.choices,
            return_range=self._return_range(),
            cameras=self._layout.cameras,
            success=facts["success"],
            rewards=self._rewards_by(),
        )
        self.observation_specs: dict[str, ArraySpec] = self._layout.specs
        self.interventions = False
        """Whether the expert may take over."""
        self._has_goals = bool(facts["goals"])
        self._has_expert = bool(facts["expert"])
        self._advising = False  # whether the expert only advises, in this episode
        self._demonstrate, self._left = False, 0  # steps of the expert that are left of an intervention
        self._rng = np.random.default_rng()
        self._observation: Observation = {}
        self._episode_id, self._index = "", -1  # -1: no episode is running
        self._succeeded = False

    @property
    def can_demonstrate(self) -> bool:
        """Whether there is an expert."""
        return self._has_expert

    def start(self, seed: int, episode_id: str, *, demonstrate: bool = False) -> EpisodeStart:
        """Start an episode; see `Environment.start`."""
        if demonstrate and not self._has_expert:
            raise StepOrderError(
                f"environment {self._name} has no operator who could demonstrate; set environment.expert, begin with "
                "--demos STORE, or learn without: demonstrations=0"
            )
        self._index = -1
        self._observation = self._seen(self._ask("reset", lambda: self._guest.reset(seed)))
        self._demonstrate, self._left, self._rng = demonstrate, 0, np.random.default_rng(seed)
        self._advising = False
        self._episode_id, self._index, self._succeeded = episode_id, 0, False
        return EpisodeStart(self._observation, seed, self._stamp(0))

    def advance(
        self, action: np.ndarray, *, last: bool = False, meanwhile: Callable[[], object] | None = None
    ) -> StepInfo:
        """Play one step; see `Environment.advance`."""
        if self._index < 0:
            raise StepOrderError("the episode has not started or is over; call start() first")
        wanted, index = self._actions.check(action), self._index
        led = self._is_led()
        chosen = self._actions.to_policy(self._ask("expert", self._guest.expert)) if led else wanted
        self._index = -1  # there is no episode after an error
        given = self._actions.to_environment(chosen)
        observation, reward, done, cut, success = self._ask("step", lambda: self._guest.step(given))
        if meanwhile is not None:
            meanwhile()
        if not (self._sparse or abs(self._config.reward_scale * reward) <= LARGEST_NUMBER):
            valid = f"expected one finite number, of size {LARGEST_NUMBER:.0e} at most with environment.reward_scale"
            raise SpecError(f"{self._name}: its reward is {reward}; {valid}")
        self._succeeded = self._succeeded or success
        terminated = bool(done) or (success and self._success_ends)
        truncated = not terminated and (bool(cut) or last or index + 1 >= self.environment_spec.max_steps)
        step = Step(
            observation=self._observation,
            action=chosen,
            action_policy=wanted,
            source=Source.SCRIPT if led else Source.POLICY,
            reward=self._config.reward_scale * (float(success) if self._sparse else reward),
            reward_source="task",
            terminated=terminated,
            truncated=truncated,
            stamp_obs=self._stamp(index),
            stamp_action=self._stamp(index),
            episode_id=self._episode_id,
            index=index,
        )
        self._observation = self._seen(observation)
        self._index = -1 if terminated or truncated else index + 1
        failure = "ended by the environment" if terminated and not self._succeeded else None
        return StepInfo(step, self._observation, self._stamp(index + 1), self._succeeded, failure)

    def begin_advice(self, seed: int) -> None:
        """Have the expert only advise in this episode; see `SupportsAdvice`."""
        del seed  # it follows from the observations
        if not self._has_expert:
            raise ConfigError(f"{self._name} has no expert, and a scripted base needs one; set environment.expert")
        self._advising = True

    def advise(self) -> np.ndarray | None:
        """Return the expert's action for the newest observation, without carrying it out."""
        return self._actions.to_policy(self._ask("expert", self._guest.expert))

    @property
    def goal_keys(self) -> tuple[str, str] | None:
        """See `SupportsGoals.goal_keys`."""
        keys = f"{STATE_PREFIX}achieved_goal", f"{STATE_PREFIX}desired_goal"
        return keys if self._has_goals and {*keys} <= self.observation_specs.keys() else None

    def judge_goals(self, achieved: np.ndarray, desired: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Judge what was achieved by goals; see `SupportsGoals.judge_goals`.

        A goal is met where the reward is as large as that of the goal itself.

        Raises:
            EnvironmentFailedError: if it fails, or a reward is no finite number.
        """
        reward, best, ended = self._ask("compute_reward", lambda: self._guest.judge(achieved, desired))
        if not np.isfinite([reward, best]).all():
            raise EnvironmentFailedError(f"{self._name}: compute_reward returned a NaN, an infinity or None")
        met, config = reward >= best, self._config
        judged = config.reward_scale * (met.astype(float) if self._sparse else reward)
        return judged, ended | (met & self._success_ends)

    def close(self) -> None:
        """Release the environment's resources."""
        self._index = -1
        self._guest.close()

    def _is_led(self) -> bool:
        """Return whether the expert chooses the next action."""
        if self._demonstrate:
            return True
        if self._advising or not (self.interventions and self._has_expert and self._config.takeovers > 0.0):
            return False
        if self._left == 0 and self._rng.random() < self._config.takeovers:
            self._left = int(self._rng.geometric(1.0 / self._config.takeover_steps))
        led = self._left > 0
        self._left -= led
        return led

    def _rewards_by(self) -> str:
        """Return the settings by which its rewards are made, as they may be set."""
        config, ends = self._config, "always" if self._success_ends else "never"
        settings = {
            "reward": config.reward,
            "reward_scale": f"{config.reward_scale:g}",
            "success_ends": ends,
            "action_repeat": config.action_repeat,
        }
        return " ".join(f"environment.{name}={value}" for name, value in settings.items())

    def _return_range(self) -> tuple[float, float] | None:
        config = self._config
        if config.return_range is not None:
            return config.return_range
        return (0.0, config.reward_scale) if self._sparse and self._success_ends else None

    def _spaces(self) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
        return self._guest.observation_space, self._guest.action_space

    def _stamp(self, index: int) -> int:
        return round(index * self.environment_spec.control_period * NS_PER_S)

    def _seen(self, observation: Any) -> Observation:
        return self._layout.arrays(observation, lambda: self._ask("render", self._guest.frame))

    def _ask(self, what: str, call: Callable[[], _T]) -> _T:
        """Return what the guest returns.

        Raises:
            EnvironmentFailedError: if it raises whatever it likes.
        """
        try:
            return call()
        except RobotRLError:
            raise
        except GuestError as error:
            raise EnvironmentFailedError(f"{self._name} failed in {what}: {error.text}") from error
        except (Exception, SystemExit) as error:
            text = " ".join(str(error).split())[:500]
            raise EnvironmentFailedError(f"{self._name} failed in {what}: {type(error).__name__}: {text}") from error
