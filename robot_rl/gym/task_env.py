"""A task of a robot arm as a gymnasium environment for learners of others: plain spaces, plain infos, rendering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from robot_rl.config.field_types import LARGEST_IMAGE
from robot_rl.config.load import load_config
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, UnknownNameError

OBSERVATIONS = ("state", "pixels")
RENDER_SIZE = (240, 320)
"""Height and width of a rendered picture [px]."""


class TaskEnv(gymnasium.Env[dict[str, np.ndarray], np.ndarray]):
    """A task of a robot arm, registered as `robot_rl/<task>-v0`.

    Observations are a `Dict`: `state/<what>` vectors in SI units, float32, and with `obs="pixels"` also
    `images/<camera>`, (height, width, 3), uint8. Actions are in [-1, 1]. The reward is 1 in the step that solves the
    task and 0 otherwise. Success, and a force above the limit, set `terminated`; the step limit sets `truncated`.
    `info` of a step has `is_success`, `force_peak` [N] and the task's own measures, all numbers.

    No OpenGL context is opened before the first `reset` with pixels, or the first `render`: a process that was forked
    from one that has a context hangs, and `AsyncVectorEnv` makes one environment before it forks.

    A copy, and what is unpickled, is a new environment of the same arguments, before its first `reset`.

    Args:
        task: Name of the task.
        obs: `state`: proprioception, and the task's estimate of where things are. `pixels`: proprioception and frames.
        cameras: Cameras that are observed with `pixels`; None takes all of the scene.
        image_size: Height and width of the observed frames [px].
        settings: Settings of the simulation, each `key=value` as of `robot-rl train --set`, of the sections in
            `SECTIONS`.
        render_mode: None, or `rgb_array`: `render` returns a picture, (240, 320, 3), uint8.
        render_camera: Camera of this picture; None takes the first of the scene.

    Raises:
        ConfigError: if an argument is not valid, or the task cannot be rendered.
        UnknownNameError: if there is no task or camera of that name.
    """

    SECTIONS = ("simulation", "randomization", "world")
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012  (gymnasium declares it as such)

    def __init__(
        self,
        task: str,
        obs: str = "state",
        *,
        cameras: Sequence[str] | None = None,
        image_size: int = 128,
        settings: Sequence[str] = (),
        render_mode: str | None = None,
        render_camera: str | None = None,
    ) -> None:
        self._again = partial(
            TaskEnv,
            task,
            obs,
            cameras=cameras,
            image_size=image_size,
            settings=settings,
            render_mode=render_mode,
            render_camera=render_camera,
        )
        for name, value in (("cameras", cameras), ("settings", settings)):
            if isinstance(value, str):
                raise ConfigError(f"{name}={value!r}: expected a list, [{value!r}]")
        if obs not in OBSERVATIONS:
            raise ConfigError(f"obs={obs!r}: valid are {' and '.join(OBSERVATIONS)}")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"render_mode={render_mode!r}: valid are None and {self.metadata['render_modes']}")
        whole = isinstance(image_size, int | np.integer) and not isinstance(image_size, bool)
        if not whole or not 1 <= image_size <= LARGEST_IMAGE:
            raise ConfigError(f"image_size={image_size!r}: expected a number of pixels, 1 to {LARGEST_IMAGE}")
        self._task, options = task, _options(settings, self.SECTIONS)
        self._cell = make_workcell(task, options)
        spec = self._cell.task.spec
        if obs == "pixels":
            watched = spec.cameras if cameras is None else tuple(cameras)
            if not watched:
                known = f"name one of {', '.join(spec.cameras)}" if spec.cameras else f"task {task} has none"
                raise ConfigError(f"obs='pixels' observes at least one camera; {known}")
            options = replace(options, cameras=watched, image_size=(int(image_size), int(image_size)), estimates=False)
        elif cameras is not None:
            raise ConfigError("cameras are observed with obs='pixels'; set it, or leave cameras out")
        self._options = options
        self._env = RobotEnv(self._cell, options=options)  # has the spaces, but nothing of it sees before `reset`
        self._opened = not options.cameras
        self.observation_space, self.action_space = self._env.observation_space, self._env.action_space
        self.render_mode = render_mode
        if render_mode is not None and (self._cell.view is None or not spec.cameras):
            raise ConfigError(f"task {task} cannot be rendered; leave render_mode out")
        if render_camera is not None and render_camera not in spec.cameras:
            raise UnknownNameError("camera", render_camera, spec.cameras)
        self._render_camera = render_camera or next(iter(spec.cameras), "")
        self.metadata = {**self.metadata, "render_fps": round(1.0 / spec.control_period)}
        self.task_description = spec.instruction
        """The task in one sentence."""
        self.max_episode_steps = spec.max_steps
        """Steps until an episode is truncated."""

    def __reduce__(self) -> tuple[Callable[[], TaskEnv], tuple[()]]:
        """Have copies and what is unpickled made anew, since a simulation cannot be copied."""
        return self._again, ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode; everything random in it follows from the seed. There are no options."""
        super().reset(seed=seed)
        if not self._opened:
            self._cell.close()
            self._cell = make_workcell(self._task, self._options)
            self._env, self._opened = RobotEnv(self._cell, options=self._options), True
        episode = seed if seed is not None else int(self.np_random.integers(2**31))
        return dict(self._env.start(episode, f"episode-{episode}").observation), {}

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], SupportsFloat, bool, bool, dict[str, Any]]:
        """Play one control period.

        Raises:
            ActionError: if the action is not finite, in [-1, 1] and of the right shape.
            StepOrderError: before `reset`, or after the end of an episode.
        """
        info = self._env.advance(np.asarray(action))
        step = info.recorded
        facts = {"is_success": info.success, "force_peak": float(info.force_peak)}
        facts |= {name: float(value) for name, value in info.metrics.items()}
        return dict(info.observation), float(step.reward), step.terminated, step.truncated, facts

    def render(self) -> np.ndarray | None:
        """Return a picture of the scene as it is now, or None without a render mode.

        Raises:
            RenderError: if this machine cannot render.
        """
        if self.render_mode is None or self._cell.view is None:
            return None
        return self._cell.view(self._render_camera, RENDER_SIZE)

    def close(self) -> None:
        """Release the simulation; may be called twice."""
        self._env.close()


def _options(settings: Sequence[str], sections: Sequence[str]) -> WorkcellOptions:
    for setting in settings:
        if not isinstance(setting, str) or setting.partition(".")[0] not in sections:
            raise ConfigError(f"setting {setting!r}: expected key=value of one of the sections {', '.join(sections)}")
    config = load_config(None, list(settings))
    return WorkcellOptions(**{section: getattr(config, section) for section in sections})
