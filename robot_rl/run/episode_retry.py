"""What to do when a robot is not heard for a moment: the episode is lost, the run need not be."""

from __future__ import annotations

import time
from collections.abc import Callable

from robot_rl.errors import RobotLostError

PAUSE = 1.0
"""Time before another attempt [s]."""


class Patience:
    """Counts attempts that failed one after another.

    Args:
        attempts: How many may fail; 0 raises the first error.
        log: Told what was lost.
    """

    def __init__(self, attempts: int = 0, log: Callable[[str], object] = lambda _: None) -> None:
        self._attempts, self._log = attempts, log
        self._failed = 0

    def lost(self, error: RobotLostError) -> None:
        """An attempt has failed; returns after a pause if there may be another.

        Raises:
            RobotLostError: the same, if too many have failed.
        """
        self._failed += 1
        if self._failed > self._attempts:
            raise error
        self._log(f"the episode was cut short: {error}")
        time.sleep(PAUSE)

    def done(self) -> None:
        """An attempt has succeeded."""
        self._failed = 0
