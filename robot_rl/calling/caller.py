"""Calling the person who is needed: a line and a bell in the terminal, and a script of the user's."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from robot_rl.errors import ConfigError

HOUR_S = 3600.0
TIMEOUT_S = 30.0
"""Longest time that the script may take [s]."""


def command_words(command: str) -> list[str]:
    """Return the words of the user's command line; none if it is empty.

    Raises:
        ConfigError: if it is none, or there is no such command.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"--call {command!r} is no command line: {error}") from error
    if words and shutil.which(words[0]) is None:
        raise ConfigError(f"--call: there is no command {words[0]!r}; name an executable file, with its path")
    return words


class Caller:
    """Calls a person, at most so often.

    Args:
        command: The user's command line, which gets the message as its last argument; empty: none.
        per_hour: Most calls within an hour; others are only logged.
        log: Writes a line that the person may see.
        now: Returns the time [s].

    Raises:
        ConfigError: if there is no such command.
    """

    def __init__(
        self, command: str, per_hour: int, log: Callable[[str], object], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._command = command_words(command)
        self._per_hour, self._log, self._now = per_hour, log, now
        self._made: deque[float] = deque()

    def call(self, message: str) -> bool:
        """Call with a message; return whether the budget allowed it. Never waits; a script that fails is logged."""
        now = self._now()
        while self._made and now - self._made[0] >= HOUR_S:
            self._made.popleft()
        if len(self._made) >= self._per_hour:
            self._log(f"not called, as there were {self._per_hour} calls within the hour: {message}")
            return False
        self._made.append(now)
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\a")
        self._log(message)
        if self._command:
            threading.Thread(target=self._run, args=(message,), name="call").start()
        return True

    def _run(self, message: str) -> None:
        name = self._command[0]
        try:
            done = subprocess.run(
                [*self._command, message],
                stdin=subprocess.DEVNULL,  # the terminal's keys are for the operator
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._log(f"{name} did not call: {error}")
            return
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            self._log(f"{name} did not call, it ended with {done.returncode}" + (f": {said[-1]}" if said else ""))
