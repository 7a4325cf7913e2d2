"""The budget of labelling: calls, tokens, money and seconds, with a hard stop before the limit is passed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from robot_rl.clock import NS_PER_S, Clock, SystemClock
from robot_rl.config.components import BudgetConfig
from robot_rl.errors import BudgetSpentError


class Purchase:
    """One call under way; the caller sets what it turned out to use."""

    def __init__(self) -> None:
        self.tokens, self.money = 0, 0.0


class Budget:
    """Counts use, and starts no call that could pass a limit. Threads may share it.

    The use of a call is known only afterwards. So a limit on tokens or money reserves the use of the largest call so
    far for each call under way, and only one call is under way until the first has returned. The limit is passed at
    most by the amount by which one call exceeds all before it.

    Args:
        config: The limits; 0 means none.
        clock: Source of time; None means the machine's clock.
    """

    def __init__(self, config: BudgetConfig, clock: Clock | None = None) -> None:
        self._config, self._clock = config, clock or SystemClock()
        self._start = self._clock.now()
        self._changed = threading.Condition()
        self._open = 0
        self._largest_tokens, self._largest_money = 0, 0.0
        self.calls, self.tokens, self.money = 0, 0, 0.0

    @property
    def limits_usage(self) -> bool:
        """Whether there is a limit on tokens or money, which only the server can count."""
        return bool(self._config.tokens or self._config.money)

    @property
    def seconds(self) -> float:
        """Time since the start [s]."""
        return (self._clock.now() - self._start) / NS_PER_S

    @property
    def seconds_left(self) -> float:
        """Time until the limit [s], infinity without one; not below 0."""
        return max(0.0, self._config.seconds - self.seconds) if self._config.seconds else float("inf")

    @contextmanager
    def purchase(self) -> Iterator[Purchase]:
        """Reserve a call; use it around the request, and set in it what the request used.

        Raises:
            BudgetSpentError: if the call could pass a limit.
        """
        with self._changed:
            if self.limits_usage:
                self._changed.wait_for(lambda: self._open == 0 or self._largest_tokens > 0)
            self._check()
            self.calls += 1
            self._open += 1
        bought = Purchase()
        try:
            yield bought
        finally:
            with self._changed:
                self._open -= 1
                self.tokens += bought.tokens
                self.money += bought.money
                self._largest_tokens = max(self._largest_tokens, bought.tokens)
                self._largest_money = max(self._largest_money, bought.money)
                self._changed.notify_all()

    def check(self) -> None:
        """Check that another call could start now.

        Raises:
            BudgetSpentError: if it could pass a limit.
        """
        with self._changed:
            self._check()

    def _check(self) -> None:
        limits, under_way = self._config, self._open + 1
        spent = [
            f"{name}: {used:g} of {limit:g} used"
            for name, used, next_one, limit in (
                ("calls", self.calls, 1, limits.calls),
                ("tokens", self.tokens, max(1, under_way * self._largest_tokens), limits.tokens),
                ("money", self.money, under_way * self._largest_money, limits.money),
                ("seconds", self.seconds, 0, limits.seconds),
            )
            if limit and (used + next_one > limit or used >= limit)
        ]
        if spent:
            raise BudgetSpentError(f"the budget does not reach for another call ({', '.join(spent)})")
