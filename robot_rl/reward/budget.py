"""The budget of labelling: calls, tokens, money and seconds, with a hard stop before the limit is passed."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from robot_rl.clock import NS_PER_S, Clock, SystemClock
from robot_rl.config.reward import BudgetConfig
from robot_rl.errors import BudgetSpentError

_Number = TypeVar("_Number", int, float)


class Purchase:
    """One call under way. It counts as the most that it may use until the caller sets what it did use.

    Args:
        most_tokens: Most tokens that it may use.
        most_money: Most money that it may cost.
    """

    def __init__(self, most_tokens: int = 0, most_money: float = 0.0) -> None:
        self._tokens, self._money = _use(most_tokens), _use(most_money)
        self.measured = False
        """Whether the caller has set the use."""

    @property
    def tokens(self) -> int:
        """Use of tokens; set it when it is known.

        Raises:
            ValueError: if it is set to a number that no use can have.
        """
        return self._tokens

    @tokens.setter
    def tokens(self, used: int) -> None:
        self._tokens, self.measured = _use(used), True

    @property
    def money(self) -> float:
        """Cost; set it when it is known.

        Raises:
            ValueError: if it is set to a number that no cost can have.
        """
        return self._money

    @money.setter
    def money(self, used: float) -> None:
        self._money, self.measured = _use(used), True


class Budget:
    """Counts use, and starts no call that could pass a limit. Threads may share it.

    The use of a call is known only afterwards. So a limit on tokens or money reserves for each call under way the most
    that it may use, as its caller states, or the largest use so far and its last growth, if that is more. Only one call
    is under way until the first has returned. The limit is passed at most by what calls use beyond that.

    Args:
        config: The limits; 0 means none.
        clock: Source of time; None means the machine's clock.
    """

    def __init__(self, config: BudgetConfig, clock: Clock | None = None) -> None:
        self._config, self._clock = config, clock or SystemClock()
        self._start = self._clock.now()
        self._changed = threading.Condition()
        self._open: list[Purchase] = []
        self._tokens, self._money = _Largest(), _Largest()
        self._refusal = ""
        self.calls, self.tokens, self.money = 0, 0, 0.0

    @property
    def limits_usage(self) -> bool:
        """Whether there is a limit on tokens or money, which only the server can count."""
        return bool(self._config.tokens or self._config.money)

    @property
    def limits_money(self) -> bool:
        """Whether there is a limit on money, which needs prices."""
        return bool(self._config.money)

    @property
    def seconds(self) -> float:
        """Time since the start [s]."""
        return (self._clock.now() - self._start) / NS_PER_S

    @property
    def seconds_left(self) -> float:
        """Time until the limit [s], infinity without one; not below 0."""
        return max(0.0, self._config.seconds - self.seconds) if self._config.seconds else float("inf")

    @contextmanager
    def purchase(self, most_tokens: int = 0, most_money: float = 0.0) -> Iterator[Purchase]:
        """Reserve a call; use it around the request, and set in it what the request used.

        Args:
            most_tokens: Most tokens that the call may use; 0 if that is not known.
            most_money: Most money that it may cost; 0 if that is not known.

        Raises:
            BudgetSpentError: if the call could pass a limit.
        """
        bought = Purchase(most_tokens, most_money)
        with self._changed:
            if self.limits_usage:
                self._changed.wait_for(lambda: not self._open or self._tokens.largest > 0)
            self._changed.wait_for(lambda: not self._may_fit_later(bought))
            self._check(bought)
            self.calls += 1
            self._open.append(bought)
        try:
            yield bought
        finally:
            with self._changed:
                self._open.remove(bought)
                self.tokens += bought.tokens
                self.money += bought.money
                if bought.measured:
                    self._tokens.add(bought.tokens)
                    self._money.add(bought.money)
                self._changed.notify_all()

    def check(self) -> None:
        """Check that no call was refused, and that another one could start now.

        Raises:
            BudgetSpentError: if one was refused, or it could pass a limit.
        """
        with self._changed:
            if self._refusal:
                raise BudgetSpentError(self._refusal)
            self._check(Purchase())

    def _may_fit_later(self, bought: Purchase) -> bool:
        """Return whether the call fits beside calls of the largest use, but not beside the most of those under way."""
        return bool(self._open) and not self._spent(bought, expected=True) and bool(self._spent(bought))

    def _check(self, bought: Purchase) -> None:
        if spent := self._spent(bought):
            self._refusal = f"the budget does not reach for another call ({', '.join(spent)})"
            raise BudgetSpentError(self._refusal)

    def _spent(self, bought: Purchase, *, expected: bool = False) -> list[str]:
        """Return the limits that the call could pass; of tokens and money, those that it is `expected` to pass."""
        limits, calls = self._config, [*self._open, bought]
        if expected:
            tokens, money = self._tokens.largest * len(calls), self._money.largest * len(calls)
        else:
            tokens = sum(max(call.tokens, self._tokens.next_may_be) for call in calls)
            money = sum(max(call.money, self._money.next_may_be) for call in calls)
        return [
            f"{name}: {used:g} of {limit:g} used"
            + (f", calls under way and this one may take {more:g}" if more else "")
            for name, used, more, limit in (
                ("calls", self.calls, 0, limits.calls),
                ("tokens", self.tokens, tokens, limits.tokens),
                ("money", self.money, money, limits.money),
                ("seconds", self.seconds, 0, limits.seconds),
            )
            if limit and (used + more > limit or used >= limit)
        ]


class _Largest:
    """The largest of the uses so far, and how much it grew last."""

    def __init__(self) -> None:
        self.largest, self._growth = 0.0, 0.0

    @property
    def next_may_be(self) -> float:
        return self.largest + self._growth

    def add(self, used: float) -> None:
        if used > self.largest:
            self._growth = used - self.largest if self.largest else 0.0
            self.largest = used


def _use(value: _Number) -> _Number:
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"a call cannot have used {value}; a use is a finite number, at least 0")
    return value
