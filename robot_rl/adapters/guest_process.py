"""A guest in an interpreter of its own: its package may need versions that clash with ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from robot_rl.adapters import guest
from robot_rl.adapters.foreign_process import ForeignProcess
from robot_rl.adapters.guest import space_of
from robot_rl.errors import EnvironmentFailedError


class GuestProcess:
    """The guest of `guest.py` in a process of another interpreter; it does what `Guest` does.

    Args:
        python: The interpreter; it needs gymnasium, numpy and msgpack, and the package of the environment.
        request: The arguments of `make_guest`.

    Raises:
        EnvironmentFailedError: if the process cannot be started, or ends, with its last lines.
        GuestError: if the guest cannot be made.
    """

    def __init__(self, python: Path, request: Mapping[str, Any]) -> None:
        self._process = ForeignProcess(
            python,
            Path(guest.__file__),
            name=f"{request['family']}:{request['name']}",
            error=EnvironmentFailedError,
            setting="environment.python is the path of a Python in which the environment's package is installed",
        )
        self._call = self._process.call
        spaces = self._process.start(request)
        self.observation_space: gymnasium.Space[Any] = space_of(spaces["observation_space"])
        self.action_space: gymnasium.Space[Any] = space_of(spaces["action_space"])

    def facts(self) -> dict[str, Any]:
        """Play one step, and return what it shows and what the environment declares; see `Guest.facts`."""
        facts: dict[str, Any] = self._call("facts")
        return facts

    def reset(self, seed: int) -> Any:
        """Start an episode; return its first observation."""
        return self._call("reset", seed)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, bool]:
        """Play one step; see `Guest.step`."""
        observation, reward, terminated, truncated, success = self._call("step", action)
        return observation, reward, terminated, truncated, success

    def frame(self) -> np.ndarray:
        """Return a picture of the scene, (height, width, 3), uint8."""
        return np.asarray(self._call("frame"))

    def expert(self) -> Any:
        """Return the expert's action for the newest observation."""
        return self._call("expert")

    def judge(self, achieved: np.ndarray, desired: np.ndarray) -> tuple[np.ndarray, ...]:
        """Judge what was achieved by goals; see `Guest.judge`."""
        reward, best, ended = self._call("judge", achieved, desired)
        return reward, best, ended

    def close(self) -> None:
        """End the process; may be called twice."""
        self._process.close()
