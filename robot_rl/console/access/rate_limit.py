"""A limit of the messages of a page."""

from __future__ import annotations

from robot_rl.clock import NS_PER_S, Clock


class RateLimit:
    """A bucket of tokens.

    Args:
        clock: Source of time.
        rate: Messages per second in the long run.
        burst: Messages at once.
    """

    def __init__(self, clock: Clock, rate: float = 120.0, burst: float = 240.0) -> None:
        self._clock, self._rate, self._burst = clock, rate, burst
        self._left, self._then = burst, clock.now()

    def allows(self) -> bool:
        """Count a message; return whether it may pass."""
        now = self._clock.now()
        self._left = min(self._burst, self._left + self._rate * (now - self._then) / NS_PER_S)
        self._then = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
