"""Guests: environments of others, made by name and driven in gymnasium's terms.

This file is also the program that serves a guest from another interpreter, for packages whose pins clash with ours:
`guest_process.py` starts it there. So it needs gymnasium, numpy and msgpack alone, and imports nothing of ours but
`guest_messages.py`, which lies beside it. It loads `dm_control_env.py` and `experts/` as files; they need no more.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import importlib.util
import logging
import math
import os
import random
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np

if __package__:
    from robot_rl.adapters.guest_messages import GuestError, one_line, serve
else:  # it is the program, and its folder the first in which modules are found
    from guest_messages import GuestError, one_line, serve  # type: ignore[import-not-found,no-redef]

logger = logging.getLogger(__name__)

SUCCESS_KEYS = ("is_success", "success", "succeed")
"""Entries of gymnasium's info that tell whether the task is done."""
EXPERT_GROUP = "robot_rl.experts"
"""Entry points of experts: functions of a gymnasium environment that return a function from observation to action."""
NEAR_NAMES = 5
INTERPRETER = "--set environment.python=FILE, or of a suite --env-python FILE"
"""How another interpreter is named."""
LEAST_GYMNASIUM = (0, 26)
"""Version since which a step tells termination and truncation apart."""
_NUMBERS = (int, float, np.integer, np.floating)
_CALLS = ("facts", "reset", "step", "frame", "expert", "judge")


class Guest:
    """A gymnasium environment with what robot_rl needs beyond it: success, action repeat, limit, period, frames.

    Args:
        env: The environment.
        success: Entry of its info that tells whether the task is done; empty takes the first of `SUCCESS_KEYS`.
        repeat: Steps of the environment for one of ours, whose rewards are added up.
        expert: From observation to action; None without one.
        reset: Starts an episode from a seed, for an environment that does not follow gymnasium's `seed`.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        success: str = "",
        repeat: int = 1,
        expert: Callable[[Any], Any] | None = None,
        reset: Callable[[int], Any] | None = None,
    ) -> None:
        self.env, self._expert = env, expert
        self._success, self._repeat = (success,) if success else SUCCESS_KEYS, repeat
        self._reset = reset or (lambda seed: _first_observation(env.reset(seed=seed)))
        self._observation: Any = None

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        """Space of the observations."""
        return self.env.observation_space

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        """Space of the actions."""
        return self.env.action_space

    def facts(self) -> dict[str, Any]:
        """Play one step, and return what it shows and what the environment declares.

        Returns:
            `steps`, the step limit, and `period` [s], of steps of ours, or None; `frames`, whether it can draw;
            `expert`, whether there is one; `info`, the entries of the info of a step; `success`, whether one of them
            tells whether the task is done; `goals`, whether it has goals that `judge` knows.
        """
        limit, period = step_limit(self.env), control_period(self.env)
        self.reset(0)
        *_, info = self._stepped(self.env.action_space.sample())
        self._is_done(info)
        return {
            "steps": None if limit is None else -(-limit // self._repeat),
            "period": None if period is None else period * self._repeat,
            "frames": "rgb_array" in (self.env.metadata.get("render_modes") or ()),
            "expert": self._expert is not None,
            "info": sorted(map(str, info)),
            "success": any(key in info for key in self._success),
            "goals": hasattr(self.env.unwrapped, "compute_reward"),
        }

    def reset(self, seed: int) -> Any:
        """Start an episode; return its first observation."""
        random.seed(seed)  # gym-hil and others draw from these, whatever seed they are given
        np.random.seed(seed % (1 << 32))
        self._observation = self._reset(seed)
        return self._observation

    def step(self, action: Any) -> tuple[Any, float, bool, bool, bool]:
        """Play one step; return observation, reward, terminated, truncated, and whether the task was done in it."""
        total, done = 0.0, False
        for _ in range(self._repeat):
            self._observation, reward, terminated, truncated, info = self._stepped(action)
            total, done = total + reward, done or self._is_done(info)
            if terminated or truncated:
                break
        return self._observation, total, terminated, truncated, done

    def frame(self) -> np.ndarray:
        """Return a picture of the scene, (height, width, 3), uint8."""
        if self.env.render_mode != "rgb_array":
            raise GuestError("it was made without render_mode='rgb_array'")
        picture = np.asarray(self.env.render())
        if picture.dtype != np.uint8:
            raise GuestError(f"it drew {picture.dtype} of shape {picture.shape}, expected uint8 (height, width, 3)")
        return picture

    def expert(self) -> Any:
        """Return the expert's action for the newest observation."""
        if self._expert is None:
            raise GuestError("it has no expert")
        return self._expert(self._observation)

    def judge(self, achieved: np.ndarray, desired: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the rewards of N states for N goals, those of states at the goals, and whether an episode ends."""
        env: Any = self.env.unwrapped
        reward, ends = env.compute_reward, getattr(env, "compute_terminated", lambda *_: False)
        rows = [(reward(a, g, {}), reward(g, g, {}), ends(a, g, {})) for a, g in zip(achieved, desired, strict=True)]
        rewards, best, ended = np.array(rows, float).T
        return rewards, best, ended > 0

    def close(self) -> None:
        """Release its resources; what fails in that is only told, as all that was played is recorded."""
        try:
            self.env.close()
        except Exception as error:  # noqa: BLE001  (it may raise whatever it likes)
            logger.warning("an environment failed in close: %s", one_line(error))

    def _stepped(self, action: Any) -> tuple[Any, float, bool, bool, Mapping[str, Any]]:
        """Return what a step of the environment returns.

        Raises:
            GuestError: if it is not what gymnasium wants of it.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        try:
            number = float(reward)
        except (TypeError, ValueError) as error:
            raise GuestError(f"its reward is {reward!r:.80}; expected one number") from error
        if not isinstance(info, Mapping):
            raise GuestError(f"its info is {info!r:.80}; expected a dict")
        return observation, number, bool(terminated), bool(truncated), info

    def _is_done(self, info: Mapping[str, Any]) -> bool:
        return any(_truth(key, info[key]) for key in self._success if key in info)


def _first_observation(returned: Any) -> Any:
    """Return the observation of what a reset returned.

    Raises:
        GuestError: if it is not observation and info, e.g. because the environment is written for gym before 0.26.
    """
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise GuestError(
            f"its reset returned {type(returned).__name__}; expected two, the observation and a dict of info"
        )
    return returned[0]


def _truth(key: str, value: Any) -> bool:
    """Return whether an entry of the info means success; None means that nobody knows, and so no.

    Raises:
        GuestError: if it is neither true nor false, e.g. the text "False" or a NaN, which Python both takes for true.
    """
    array = np.asarray(False if value is None else value)
    if array.dtype.kind not in "biuf" or np.isnan(array).any():
        raise GuestError(
            f"info[{key!r}] is {value!r:.80}; expected True or False, or a number; environment.success names it"
        )
    return bool(array.any())


def step_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    """Return the number of steps after which an environment truncates its episodes; None if it declares none."""
    declared = env.spec.max_episode_steps if env.spec is not None else None
    layer: Any = env
    while declared is None and isinstance(layer, gymnasium.Wrapper):  # a limit of its own is not in its spec
        if isinstance(layer, gymnasium.wrappers.TimeLimit):
            declared = layer._max_episode_steps
        layer = layer.env
    return declared or getattr(env.unwrapped, "max_episode_steps", None)


def control_period(env: gymnasium.Env[Any, Any]) -> float | None:
    """Return the time between two steps [s]; None if it declares none, NaN for a rate that is no number."""
    period = getattr(env.unwrapped, "dt", None)
    if isinstance(period, _NUMBERS) and period > 0:
        return float(period)
    rate = env.metadata.get("render_fps")
    if not rate:
        return None
    return 1.0 / float(rate) if isinstance(rate, _NUMBERS) else math.nan


# Makers.


def make_guest(
    family: str,
    name: str,
    options: Mapping[str, Any],
    *,
    success: str = "",
    repeat: int = 1,
    expert: str = "",
    frames: bool = False,
    shadows: bool = True,
) -> Guest:
    """Make the guest of a name.

    Args:
        family: `gym`, `dm_control` or `metaworld`.
        name: In the family: `Pendulum-v1`, `PACKAGE:ID`, `cheetah/run`, `peg-insert-side-v3`.
        options: Keyword arguments of the environment.
        success: See `Guest`.
        repeat: See `Guest`.
        expert: A name in `EXPERT_GROUP`, `MODULE:FUNCTION` or `FILE.py:FUNCTION`; empty: nobody.
        frames: Whether it has to draw.
        shadows: Whether lights of a MuJoCo scene cast shadows.

    Raises:
        GuestError: if it cannot be made.
    """
    if tuple(map(int, gymnasium.__version__.split(".")[:2])) < LEAST_GYMNASIUM:
        least = ".".join(map(str, LEAST_GYMNASIUM))
        raise GuestError(f"{family}:{name} has gymnasium {gymnasium.__version__} beside it; install {least} or newer")
    if sys.platform == "linux" and not os.environ.get("DISPLAY"):
        os.environ.setdefault("MUJOCO_GL", "egl")  # without a screen only EGL can render, and gym-hil always renders
    makers = {"gym": _gym, "dm_control": _dm_control, "metaworld": _metaworld}
    try:
        env, reset = makers[family](name, dict(options), frames)
        if not shadows:
            _switch_shadows_off(env)
        leader = _make_expert(expert, env) if expert else None
    except GuestError:
        raise
    except ImportError as error:
        raise GuestError(
            f"{family}:{name} needs a package that is not here: {error}; install it in {sys.executable}, or name an "
            f"interpreter that has it: {INTERPRETER}"
        ) from error
    except (Exception, SystemExit) as error:
        raise GuestError(
            f"{family}:{name} cannot be made: {one_line(error)} ({_versions(family, name)}; packages that do not fit "
            f"each other live in an interpreter of their own: {INTERPRETER})"
        ) from error
    return Guest(env, success=success, repeat=repeat, expert=leader, reset=reset)


_Made = tuple[Any, Any]  # the environment, and how its episodes start if not by gymnasium's `seed`


def _gym(name: str, options: dict[str, Any], frames: bool) -> _Made:
    package, _, identity = name.rpartition(":")
    if package:
        module = _module(package)
        if hasattr(gymnasium, "register_envs"):
            gymnasium.register_envs(module)
    if identity not in gymnasium.registry:
        known = sorted(gymnasium.registry)
        near = difflib.get_close_matches(identity, known, n=NEAR_NAMES)
        raise GuestError(f"gymnasium knows no {identity!r}" if identity else "no environment is named", near)
    if frames:
        options.setdefault("render_mode", "rgb_array")
    return gymnasium.make(identity, disable_env_checker=True, **options), None


def _dm_control(name: str, options: dict[str, Any], frames: bool) -> _Made:
    domain, _, task = name.partition("/")
    if domain == "manipulation":
        from dm_control import manipulation

        _check_known(name, [f"manipulation/{known}" for known in manipulation.ALL])
        return _dm_control_env(manipulation.load(task, **options), frames), None
    from dm_control import suite

    _check_known(name, ["/".join(known) for known in suite.ALL_TASKS])
    return _dm_control_env(suite.load(domain, task, **options), frames), None


def _dm_control_env(env: Any, frames: bool) -> gymnasium.Env[Any, Any]:
    made: gymnasium.Env[Any, Any] = _module(str(Path(__file__).with_name("dm_control_env.py"))).DmControlEnv(
        env, frames
    )
    return made


def _metaworld(name: str, options: dict[str, Any], frames: bool) -> _Made:
    from metaworld.env_dict import ALL_V3_ENVIRONMENTS_GOAL_OBSERVABLE as ENVIRONMENTS

    suffix = "-goal-observable"
    _check_known(name, [known[: -len(suffix)] for known in ENVIRONMENTS])
    env = ENVIRONMENTS[name + suffix](seed=0, **({"render_mode": "rgb_array"} if frames else {}), **options)
    env._freeze_rand_vec, env.seeded_rand_vec = False, True  # each reset draws a scene, from the seed of `seed()`
    limited = gymnasium.wrappers.TimeLimit(env, env.max_path_length)

    def reset(seed: int) -> Any:
        env.seed(seed)
        return limited.reset()[0]

    return limited, reset


def _make_expert(expert: str, env: Any) -> Callable[[Any], Any]:
    points = {point.name: point for point in importlib.metadata.entry_points(group=EXPERT_GROUP)}
    module, _, function = expert.rpartition(":")
    if not module and expert not in points:
        raise GuestError(f"unknown expert {expert!r}; valid: {', '.join(sorted(points))}, or MODULE:FUNCTION")
    try:
        make = points[expert].load() if expert in points else getattr(_module(module), function)
    except (ImportError, AttributeError, OSError) as error:
        raise GuestError(f"expert {expert!r} cannot be imported: {error}") from error
    try:
        leader = make(env)
    except Exception as error:
        raise GuestError(f"expert {expert!r} cannot be made: {one_line(error)}") from error
    if not callable(leader):
        raise GuestError(f"expert {expert!r} made {leader!r:.80}; expected a function from observation to action")
    made: Callable[[Any], Any] = leader
    return made


def _module(name: str) -> ModuleType:
    """Import a module, installed or in the working directory, or a file."""
    if name.endswith(".py") and (spec := importlib.util.spec_from_file_location(Path(name).stem, name)) and spec.loader:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(os.getcwd())


def _switch_shadows_off(env: Any) -> None:
    model: Any = getattr(env.unwrapped, "model", None)
    if not hasattr(model, "light_castshadow"):
        raise GuestError("it has no MuJoCo scene whose shadows could be switched off; leave environment.shadows on")
    model.light_castshadow[:] = 0


def _versions(family: str, name: str) -> str:
    """Tell the versions of what an environment is made with: its package's, and those that packages pin."""
    package = name.partition(":")[0].partition(".")[0] if family == "gym" else family
    found = []
    for distribution in (package, "gymnasium", "mujoco"):
        try:
            found.append(f"{distribution} {importlib.metadata.version(distribution)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def _check_known(name: str, known: Sequence[str]) -> None:
    if name not in known:
        near = difflib.get_close_matches(name, known, n=NEAR_NAMES, cutoff=0.4)
        raise GuestError(f"there is no {name!r}", near or sorted(known)[:NEAR_NAMES])


def describe_space(space: gymnasium.Space[Any]) -> dict[str, Any]:
    """Return a space as plain values; `space_of` is the inverse."""
    spaces = gymnasium.spaces
    if isinstance(space, spaces.Box):
        return {"kind": "Box", "low": space.low, "high": space.high, "dtype": space.dtype.str}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": np.asarray(space.nvec), "start": np.asarray(space.start)}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "MultiBinary", "n": [int(n) for n in np.atleast_1d(space.n)]}
    if isinstance(space, spaces.Dict):
        return {"kind": "Dict", "spaces": {key: describe_space(part) for key, part in space.items()}}
    if isinstance(space, spaces.Tuple):
        return {"kind": "Tuple", "spaces": [describe_space(part) for part in space]}
    return {"kind": type(space).__name__, "text": repr(space)}


class OtherSpace(gymnasium.Space[Any]):
    """A space of a kind that messages cannot carry; it can only be named."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def __repr__(self) -> str:
        """Return the text of the space that it stands for."""
        return self._text


def space_of(description: Mapping[str, Any]) -> gymnasium.Space[Any]:
    """Return the space that `describe_space` described."""
    spaces, kind = gymnasium.spaces, description["kind"]
    if kind == "Box":
        dtype = np.dtype(description["dtype"]).type
        return spaces.Box(description["low"], description["high"], dtype=dtype)
    if kind == "Discrete":
        return spaces.Discrete(description["n"], start=description["start"])
    if kind == "MultiDiscrete":
        return spaces.MultiDiscrete(description["nvec"], start=description["start"])
    if kind == "MultiBinary":
        return spaces.MultiBinary(description["n"])
    if kind == "Dict":
        return spaces.Dict({key: space_of(part) for key, part in description["spaces"].items()})
    if kind == "Tuple":
        return spaces.Tuple([space_of(part) for part in description["spaces"]])
    return OtherSpace(description["text"])


# The program.


def _make(request: Mapping[str, Any]) -> tuple[Guest, dict[str, Any]]:
    guest = make_guest(**request)
    spaces = (guest.observation_space, guest.action_space)
    return guest, dict(zip(("observation_space", "action_space"), map(describe_space, spaces), strict=True))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), _make, _CALLS)
