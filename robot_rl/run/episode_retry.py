"""Retries of episodes that are lost because the robot does not answer for a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from robot_rl.errors import ArmStoppedError, RobotLostError

T = TypeVar("T")

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
        attended: A person can let a stopped arm go on. Then a stop counts as no attempt; otherwise it ends the run at
            once, since waiting does not end it.
    """

    def __init__(
        self,
        attempts: int = 0,
        log: Callable[[str], object] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
        attended: bool = False,
    ) -> None:
        self._attempts, self._log, self._stop, self._attended = attempts, log, stop, attended
        self._failed = 0

    def until(self, stop: Callable[[], bool]) -> EpisodeRetry:
        """Return the same retries, which wait only until `stop` returns True."""
        return EpisodeRetry(self._attempts, self._log, stop, self._attended)

    def attempt(self, play: Callable[[], T], abandon: Callable[[str], T | None] = lambda _: None) -> T | None:
        """Play an episode; where the robot is lost in it, give it up and return after a pause.

        Args:
            play: Plays it.
            abandon: Ends it, given the reason, and returns what is left of it.

        Raises:
            RobotLostError: as `lost`.
        """
        try:
            result = play()
        except RobotLostError as error:
            left = abandon(f"robot lost: {error}")
            self.lost(error)
            return left
        self.done()
        return result

    def cut(self, reason: str) -> None:
        """Say that an episode was cut, e.g. by a hold, and is played again."""
        self._log(f"the episode was cut short: {reason}; it does not count, and is played again")

    def lost(self, error: RobotLostError) -> None:
        """Count a failed attempt, and return after a pause if there may be another.

        Raises:
            RobotLostError: the same, if too many have failed, or if it needs a person and none is there.
        """
        if isinstance(error, ArmStoppedError):
            if not (self._attended and self._attempts):
                raise error
            self._log(f"the episode was cut short: {error}; a person has to let it go on")
            self._wait(FIRST_PAUSE)
            return
        self._failed += 1
        if self._failed > self._attempts:
            raise error
        pause = min(FIRST_PAUSE * 2.0 ** (self._failed - 1), LONGEST_PAUSE)
        self._log(
            f"the episode was cut short: {error}; attempt {self._failed} of {self._attempts} to go on in {pause:g} s"
        )
        self._wait(pause)

    def done(self) -> None:
        """Count a successful attempt: the failed ones before it are forgotten."""
        self._failed = 0

    def _wait(self, pause: float) -> None:
        """Wait [s], or until somebody wants the program to end."""
        end = time.monotonic() + pause
        while (left := end - time.monotonic()) > 0.0 and not self._stop():
            time.sleep(min(_POLL, left))
