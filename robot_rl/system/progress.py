"""The progress of work: a live bar on a terminal, a plain line every ten seconds anywhere else.

It writes to standard error, so that the answer on standard output can be piped.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from robot_rl.clock import NS_PER_S, Clock, SystemClock
from robot_rl.system.printable import printable

Field = float | str | None

_WINDOW_S = 30.0  # the rate is that of the last half minute
_REFRESH_S = 0.2
_FORMATS = {
    "updates_per_s": "{:.0f} updates/s",
    "success": "success {:.0%}",
    "return_mean": "return {:.4g}",
    "intervention_rate": "operator {:.0%}",
    "q_mean": "Q {:.2f}",
    "q_bound": "Q bound {:.2f}",
}


class Display(Protocol):
    """A display of the progress of one piece of work."""

    def update(self, done: int, **fields: Field) -> None:
        """Set how much is done, and facts to show."""
        ...

    def log(self, text: str) -> None:
        """Write a line that stays."""
        ...

    def restart(self) -> None:
        """Measure the rate from now on."""
        ...


class Progress:
    """Progress of counted work. Use it in a `with` statement, so that the terminal is left in order.

    Args:
        total: How much there is to do; None while that is not known. It may be set later.
        what: The work, e.g. `training`.
        unit: What is counted.
        start: How much was done before, e.g. by a run that is now resumed.
        stream: Where to show it; None takes standard error.
        clock: Source of time; None takes the machine's clock.
        interval: Time between plain lines [s].
    """

    def __init__(
        self,
        total: int | None,
        what: str,
        *,
        unit: str = "steps",
        start: int = 0,
        stream: TextIO | None = None,
        clock: Clock | None = None,
        interval: float = 10.0,
    ) -> None:
        self.total, self._what, self._unit, self._done = total, what, unit, start
        self._clock = clock or SystemClock()
        self._console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)
        self._live: Live | None = None
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            # Standard output stays as it is: an answer printed there must not land on this console.
            self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
        self._interval = _REFRESH_S if self._live else interval
        self._fields: dict[str, Field] = {}
        self._history: deque[tuple[float, int]] = deque([(self._now(), start)])
        self._shown = float("-inf")
        self._waiting: deque[Callable[[], object]] = deque()
        self._writing = False

    def update(self, done: int, **fields: Field) -> None:
        """Set how much is done; cheap enough to call at every step.

        Args:
            done: How much of `total`.
            fields: Numbers or texts to show; they stay until they are given again, None takes one away. `success`,
                `intervention_rate`, `updates_per_s`, `q_mean` and `q_bound` have formats of their own, others
                are shown by their name.
        """
        self._done = done
        self._fields |= fields
        now = self._now()
        self._history.append((now, done))
        while len(self._history) > 2 and self._history[1][0] <= now - _WINDOW_S:
            self._history.popleft()
        if now - self._shown >= self._interval:
            self._show(now)

    def log(self, text: str) -> None:
        """Write a line that stays, above the bar where there is one. A signal handler may call it, at any moment."""
        self._in_turn(lambda: self._console.print(printable(text), markup=False))

    def restart(self) -> None:
        """Measure the rate from now on, e.g. after work that is not counted."""
        self._history.clear()
        self._history.append((self._now(), self._done))

    @property
    def rate(self) -> float:
        """Units per second over the last half minute; 0 while unknown."""
        (start, first), (end, last) = self._history[0], self._history[-1]
        return (last - first) / (end - start) if end > start else 0.0

    def __enter__(self) -> Progress:
        """Start the display."""
        if self._live:
            self._in_turn(self._live.start)
        return self

    def __exit__(self, *exception: object) -> None:
        """Show the last state and leave the terminal in order."""
        self._show(self._now())
        if self._live:
            self._in_turn(self._live.stop)

    def _in_turn(self, write: Callable[[], object]) -> None:
        """Write now, or, when a signal handler interrupts something being written, as soon as that is finished."""
        self._waiting.append(write)
        if self._writing:
            return
        self._writing = True
        try:
            while self._waiting:
                self._waiting.popleft()()
        finally:
            self._writing = False

    def _now(self) -> float:
        return self._clock.now() / NS_PER_S

    def _show(self, now: float) -> None:
        self._shown = now
        count = f"{self._done} {self._unit}"
        if self.total is not None:
            share = self._done / self.total if self.total else 1.0
            count = f"{self._done}/{self.total} {self._unit} ({share:.0%})"
        facts = self._facts()
        if self._live:
            bar = ProgressBar(total=None if self.total is None else max(self.total, 1), completed=self._done, width=40)
            head = Text.assemble((self._what, "bold"), "  ", count)
            shown = Group(head, bar, Text(", ".join(facts), style="dim"))
            self._in_turn(partial(self._live.update, shown, refresh=True))
        else:
            self.log(", ".join([f"{self._what}: {count}", *facts]))

    def _facts(self) -> list[str]:
        facts = [f"{self.rate:.{1 if self.rate < 10 else 0}f} {self._unit}/s"] if self.rate else []
        for name, value in self._fields.items():
            if value is None:
                continue
            if name in _FORMATS and not isinstance(value, str):
                facts.append(_FORMATS[name].format(value))
            else:
                facts.append(f"{name.replace('_', ' ')} {value if isinstance(value, str) else format(value, '.4g')}")
        left = 0 if self.total is None else self.total - self._done
        if self.rate and left > 0:
            facts.append(f"{format_duration(left / self.rate)} left")
        return facts


class Part:
    """A display of one part of work that is shown as a whole; a `Display`.

    Args:
        whole: Progress of all parts.
        name: Of this part.
        done: How much of each part is done, by name; shared by all parts.
    """

    def __init__(self, whole: Progress, name: str, done: dict[str, int]) -> None:
        self._whole, self._name, self._done = whole, name, done

    def update(self, done: int, **fields: Field) -> None:
        """Set how much of this part is done, and facts to show of it."""
        self._done[self._name] = done
        self._whole.update(sum(self._done.values()), part=self._name, **fields)

    def log(self, text: str) -> None:
        """Write a line that stays, with the name of the part."""
        self._whole.log(f"{self._name}: {text}")

    def restart(self) -> None:
        """Measure the rate from now on."""
        self._whole.restart()


def format_duration(seconds: float) -> str:
    """Return a duration [s] as text: `45 s`, `3 min 05 s`, `2 h 07 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
