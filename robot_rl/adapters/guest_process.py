"""A guest in an interpreter of its own: its package may need versions that clash with ours."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from robot_rl.adapters import guest
from robot_rl.adapters.guest import GuestError, pack, receive, space_of
from robot_rl.errors import EnvironmentFailedError
from robot_rl.system.child_process import ChildProcess

START_LIMIT = 180.0
"""Longest time that a guest may take to be made [s]."""
REPLY_LIMIT = 60.0
"""Longest time that a guest may take for a step or a reset [s]."""
END_LIMIT = 2.0
"""Time for an orderly end [s]."""
_LAST_LINES = 5


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
        self._name = f"{request['family']}:{request['name']}"
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = ChildProcess(
                    [str(python), str(Path(guest.__file__)), str(theirs.fileno())],
                    environment={**os.environ, "PYTHONUNBUFFERED": "1"},
                    inherit=(theirs.fileno(),),
                    on_line=lambda line: None,
                    death_signal=signal.SIGKILL,
                )
            except OSError as error:
                ours.close()
                raise EnvironmentFailedError(
                    f"{self._name}: the interpreter {python} cannot be started: {error.strerror}; "
                    "environment.python is the path of a Python in which the environment's package is installed"
                ) from error
        self._connection = ours
        spaces = self._exchange(request, START_LIMIT)
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
        with contextlib.suppress(OSError):
            self._connection.close()
        self._process.end(END_LIMIT)

    def _call(self, name: str, *arguments: Any) -> Any:
        return self._exchange({"call": name, "arguments": arguments}, REPLY_LIMIT)

    def _exchange(self, request: Mapping[str, Any], limit: float) -> Any:
        """Return the value of the reply.

        Raises:
            EnvironmentFailedError: if the process is gone or does not reply in time.
            GuestError: if the guest failed.
        """
        try:
            self._connection.settimeout(limit)
            self._connection.sendall(pack(request))
            reply = receive(self._connection)
        except TimeoutError as error:
            self.close()
            raise EnvironmentFailedError(f"{self._name} did not reply within {limit:g} s and was ended") from error
        except (OSError, EOFError, ValueError) as error:
            self._process.wait(END_LIMIT)
            self.close()
            last = " | ".join(self._process.last_lines[-_LAST_LINES:]) or "none"
            raise EnvironmentFailedError(
                f"the process of {self._name} {self._process.describe_end()}; its last lines: {last}"
            ) from error
        if "error" in reply:
            raise GuestError(reply["error"], reply["near"])
        return reply["value"]
