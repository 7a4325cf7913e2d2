"""Preferences, combined from both orders of a pair: one order alone may reflect the order more than the images."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from robot_rl.reward.answer import Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.query import canonical

Moment = tuple[str, int]
"""Episode id, and row of the observation."""
Shown = tuple[str, tuple[int, ...]]
"""Episode id, and rows of the observations."""


@dataclass(frozen=True)
class Preference:
    """Which of two moments is closer to the goal, or which of two segments does better.

    Attributes:
        first: One moment; of a segment, its end.
        second: The other.
        value: 1 if the first is, 0 if the second is, 0.5 if neither is, or if the two orders contradict each other.
        flipped: Whether they do.
        earlier: Of segments, the rows that were shown before their ends.
    """

    first: Moment
    second: Moment
    value: float
    flipped: bool
    earlier: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    @property
    def shown(self) -> tuple[Shown, Shown]:
        """Episode and rows of either side."""
        sides = zip((self.first, self.second), self.earlier, strict=True)
        first, second = ((name, (*rows, end)) for (name, end), rows in sides)
        return first, second


@dataclass(frozen=True)
class Preferences:
    """The preferences of labelled pairs.

    Attributes:
        pairs: Those with two parsed answers.
        skipped: Pairs with an answer that is unsure, refused or unparsable; nothing is learned from them.
        incomplete: Pairs with an answer in one order only, so far.
    """

    pairs: tuple[Preference, ...]
    skipped: int
    incomplete: int

    @property
    def flip_rate(self) -> float | None:
        """Share of the pairs with two answers whose answers contradict each other; None if there are none."""
        return sum(pair.flipped for pair in self.pairs) / len(self.pairs) if self.pairs else None


def combine_orders(labels: Iterable[Label]) -> Preferences:
    """Combine labels of kind `preference`, of which each pair has one for either order."""
    waiting: dict[str, Label] = {}
    pairs: list[Preference] = []
    skipped = 0
    for label in labels:
        first, second = label.subject
        twin = waiting.pop(canonical([second, first]), None)
        if twin is None:
            waiting[canonical([first, second])] = label
        elif twin.answer.status is not Status.OK or label.answer.status is not Status.OK:
            skipped += 1
        else:
            one, other = twin.answer.values[0], 1.0 - label.answer.values[0]
            flipped = (one - 0.5) * (other - 0.5) < 0.0
            value = one if one == other else 0.5
            moments = tuple((str(clip["episode_id"]), int(clip["rows"][-1])) for clip in twin.subject)
            earlier = tuple(tuple(map(int, clip["rows"][:-1])) for clip in twin.subject)
            pairs.append(Preference(moments[0], moments[1], value, flipped, (earlier[0], earlier[1])))
    return Preferences(tuple(pairs), skipped, len(waiting))
