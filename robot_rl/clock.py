"""Time as a dependency: the wall clock on a robot, the simulator's clock in simulation, a fake one in tests."""

from __future__ import annotations

import time
from typing import Protocol

NS_PER_S = 1_000_000_000


class Clock(Protocol):
    """Source of time stamps. In simulation, sleeping is what makes the physics advance."""

    def now(self) -> int:
        """Return the time [ns] since an arbitrary start; it never goes back."""
        ...

    def sleep_until(self, stamp: int) -> None:
        """Block until `now() >= stamp` [ns]; return at once if that has passed."""
        ...


class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> int:
        """Return the time [ns]."""
        return time.monotonic_ns()

    def sleep_until(self, stamp: int) -> None:
        """Sleep until `stamp` [ns]."""
        delay = stamp - self.now()
        if delay > 0:
            time.sleep(delay / NS_PER_S)


class WallClock:
    """Time since 1970, as stamps that several processes share are counted; it does not follow later corrections."""

    def __init__(self) -> None:
        self._offset = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        """Return the time [ns]."""
        return time.monotonic_ns() + self._offset

    def sleep_until(self, stamp: int) -> None:
        """Sleep until `stamp` [ns]."""
        delay = stamp - self.now()
        if delay > 0:
            time.sleep(delay / NS_PER_S)


class FakeClock:
    """A clock that moves only when somebody sleeps on it. For tests."""

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        """Return the time [ns]."""
        return self._now

    def sleep_until(self, stamp: int) -> None:
        """Jump to `stamp` [ns]."""
        self._now = max(self._now, stamp)


def stands_still(clock: Clock, probe: float = 0.05) -> bool:
    """Return whether time stops while nobody sleeps on the clock, as in a simulator; waits `probe` [s] to see."""
    before = clock.now()
    time.sleep(probe)
    return clock.now() == before


class Rate:
    """Keep a loop on absolute deadlines, so that a slow step does not make every later step late.

    Args:
        clock: Where time comes from.
        period: Time between deadlines [s].
    """

    def __init__(self, clock: Clock, period: float) -> None:
        self._clock = clock
        self._period = round(period * NS_PER_S)
        self._deadline = clock.now()
        self.overruns = 0
        """Deadlines missed by more than one period since `restart`."""

    def restart(self) -> None:
        """Count from now, e.g. at the start of an episode."""
        self._deadline = self._clock.now()
        self.overruns = 0

    def sleep(self) -> None:
        """Wait for the next deadline; after an overrun of more than a period, skip the deadlines that are lost."""
        self._deadline += self._period
        late = self._clock.now() - self._deadline
        if late > self._period:
            self.overruns += 1
            self._deadline += late // self._period * self._period
        self._clock.sleep_until(self._deadline)

    def sleep_past(self, delay: float) -> None:
        """Wait until `delay` [s] after the last deadline; not at all if that has passed."""
        self._clock.sleep_until(self._deadline + round(delay * NS_PER_S))
