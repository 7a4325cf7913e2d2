"""A program of ours in another interpreter, for packages whose versions clash with ours."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_rl.adapters.guest_messages import GuestError, pack, receive
from robot_rl.errors import RobotRLError
from robot_rl.system.child_process import ChildProcess

START_LIMIT = 180.0
"""Longest time that a program may take for its first answer [s]."""
REPLY_LIMIT = 60.0
"""Longest time that it may take for another one [s]."""
END_LIMIT = 2.0
"""Time for an orderly end [s]."""
_LAST_LINES = 5


class ForeignProcess:
    """A program that serves by `guest_messages.serve`.

    Args:
        python: The interpreter; it needs numpy and msgpack, and what the program imports.
        program: The file of the program.
        name: Of what it serves, for messages.
        error: Raised when the process cannot be started, is gone, or does not answer.
        setting: The setting that names the interpreter, and what has to be installed there, for messages.
    """

    def __init__(self, python: Path, program: Path, *, name: str, error: type[RobotRLError], setting: str) -> None:
        self._name, self._error = name, error
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = ChildProcess(
                    [str(python), str(program), str(theirs.fileno())],
                    environment={**os.environ, "PYTHONUNBUFFERED": "1"},
                    inherit=(theirs.fileno(),),
                    on_line=lambda line: None,
                    death_signal=signal.SIGKILL,
                )
            except OSError as failure:
                ours.close()
                raise error(
                    f"{name}: the interpreter {python} cannot be started: {failure.strerror}; {setting}"
                ) from failure
        self._connection = ours

    def start(self, request: Mapping[str, Any]) -> Any:
        """Have something made; return the answer. Errors as of `call`."""
        return self._exchange(request, START_LIMIT)

    def call(self, method: str, *arguments: Any, limit: float = REPLY_LIMIT) -> Any:
        """Call a method of it within `limit` seconds; return its value.

        Raises:
            GuestError: if it failed.
        """
        return self._exchange({"call": method, "arguments": arguments}, limit)

    def close(self) -> None:
        """End the process; may be called twice."""
        with contextlib.suppress(OSError):
            self._connection.close()
        self._process.end(END_LIMIT)

    def _exchange(self, request: Mapping[str, Any], limit: float) -> Any:
        try:
            self._connection.settimeout(limit)
            self._connection.sendall(pack(request))
            reply = receive(self._connection)
        except TimeoutError as error:
            self.close()
            raise self._error(f"{self._name} did not reply within {limit:g} s and was ended") from error
        except (OSError, EOFError, ValueError) as error:
            self._process.wait(END_LIMIT)
            self.close()
            last = " | ".join(self._process.last_lines[-_LAST_LINES:]) or "none"
            raise self._error(
                f"the process of {self._name} {self._process.describe_end()}; its last lines: {last}"
            ) from error
        if "error" in reply:
            raise GuestError(reply["error"], reply["near"])
        return reply["value"]
