"""Retries of episodes that are lost because the robot does not answer for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable

from robot_rl.errors import RobotLostError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 16.0
"""Time before another attempt [s]; it doubles with each that fails, so that an arm has half a minute to come back."""
_POLL = 0.1
"""Time between two looks for a request to stop [s]."""


class EpisodeRetry:
    """Counts attempts that failed one after another, and waits between them, longer each time.

    Args:
        attempts: How many may fail; 0 raises the first error.
        log: Called with a message about each lost episode.
        stop: Whether to wait no longer, because somebody wants the program to end.
    """

    def __init__(
        self,
        attempts: int = 0,
        log: Callable[[str], object] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._attempts, self._log, self._stop = attempts, log, stop
        self._failed = 0

    def until(self, stop: Callable[[], bool]) -> EpisodeRetry:
        """Return the same retries, which wait only until `stop` returns True."""
        return EpisodeRetry(self._attempts, self._log, stop)

    def lost(self, error: RobotLostError) -> None:
        """Count a failed attempt, and return after a pause if there may be another.

        Raises:
            RobotLostError: the same, if too many have failed.
        """
        self._failed += 1
        if self._failed > self._attempts:
            raise error
        pause = min(FIRST_PAUSE * 2.0 ** (self._failed - 1), LONGEST_PAUSE)
        self._log(
            f"the episode was cut short: {error}; attempt {self._failed} of {self._attempts} to go on in {pause:g} s"
        )
        end = time.monotonic() + pause
        while (left := end - time.monotonic()) > 0.0 and not self._stop():
            time.sleep(min(_POLL, left))

    def done(self) -> None:
        """Count a successful attempt: the failed ones before it are forgotten."""
        self._failed = 0
