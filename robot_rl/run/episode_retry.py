"""Retries of episodes that are lost because the robot does not answer for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable

from robot_rl.errors import RobotLostError

PAUSE = 1.0
"""Time before another attempt [s]."""


class EpisodeRetry:
    """Counts attempts that failed one after another.

    Args:
        attempts: How many may fail; 0 raises the first error.
        log: Called with a message about each lost episode.
    """

    def __init__(self, attempts: int = 0, log: Callable[[str], object] = lambda _: None) -> None:
        self._attempts, self._log = attempts, log
        self._failed = 0

    def lost(self, error: RobotLostError) -> None:
        """Count a failed attempt, and return after a pause if there may be another.

        Raises:
            RobotLostError: the same, if too many have failed.
        """
        self._failed += 1
        if self._failed > self._attempts:
            raise error
        self._log(f"the episode was cut short: {error}")
        time.sleep(PAUSE)

    def done(self) -> None:
        """Count a successful attempt: the failed ones before it are forgotten."""
        self._failed = 0
