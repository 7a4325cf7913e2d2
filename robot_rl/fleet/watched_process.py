"""A process of a fleet that is started again when it is killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.child_process import ChildProcess

DONE = "done"
"""How a process ended that did all its work."""
_AGAIN_AFTER = 1.0
"""From the end of a killed process to its next start [s]."""
_MANY, _WITHIN = 5, 60.0
"""A process that was started so often within so many seconds, and killed again, is given up."""


class WatchedProcess:
    """One process of a fleet. A signal ends it for the moment, an exit code for good: it has reported an error.

    Args:
        name: Of the process.
        run: Its run directory; where there is a run, it is resumed.
        start: Starts it, new or resumed.
        is_done: Whether it needs no further start, asked while it does not run.

    Attributes:
        ended: Why it will not run again, `DONE` where it did all its work; empty while it runs or will.
    """

    def __init__(
        self, name: str, run: Path, start: Callable[[bool], ChildProcess], is_done: Callable[[], bool] = lambda: False
    ) -> None:
        self.name, self.ended = name, ""
        self._run, self._start, self._is_done = run, start, is_done
        self._process: ChildProcess | None = None
        self._starts: list[float] = []
        self._again_at = 0.0

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def look(self, *, start: bool) -> str:
        """Start it where that is due and `start` is true; return a line about an end, or an empty one."""
        if self._process is None:
            if not self.ended and self._is_done():
                self.ended = DONE
            if start and not self.ended and time.monotonic() >= self._again_at:
                self._starts.append(time.monotonic())
                self._process = self._start(RunDirectory.holds_run(self._run))
            return ""
        if (code := self._process.poll()) is None:
            return ""
        self._process.wait()
        how, self._process = self._process.describe_end(), None
        if code >= 0:
            self.ended = DONE if code == 0 else how
            return f"{self.name} {'is done' if code == 0 else how}"
        if sum(time.monotonic() - then < _WITHIN for then in self._starts) >= _MANY:
            self.ended = f"{how}, {_MANY} times within {_WITHIN:g} s"
            return f"{self.name} {self.ended}; it is not started again"
        self._again_at = time.monotonic() + _AGAIN_AFTER
        return f"{self.name} {how}; it is started again, and the others go on"

    def stop(self) -> None:
        """Request an orderly end."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def join(self, limit: float) -> None:
        """Wait for its end for at most `limit` [s], then kill it."""
        if self._process is not None:
            self._process.end(limit)
            self._process = None
