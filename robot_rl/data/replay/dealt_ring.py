"""A ring of which each of several learners holds a part: whole episodes are dealt to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.percept import Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.errors import DataError

ALL = -1
"""Holder of an episode that all learners hold."""
_NOT_BY_ROW = ("episode_rows", "episode_names", "undecided", "open", "dealt", "newest", "images_by")


class DealtRing(ReplayBuffer):
    """One learner's part of a ring.

    All learners receive all episodes, and each keeps those that are dealt to it: an episode goes to the learner that
    was dealt the fewest steps so far. So they agree without a message, and hold about as many steps each. A ring that
    forgets keeps its first episode in all parts, so that each can be sampled from the first step on.

    Args:
        capacity: Rows of all parts together; a ring that does not forget has room for all of them in each part.
        state_size: See `ReplayBuffer`, as the other arguments.
        action_size: See there.
        args: See there.
        rank: Which learner this is.
        size: How many there are.
        options: See there.
    """

    def __init__(
        self, capacity: int, state_size: int, action_size: int, *args: Any, rank: int, size: int, **options: Any
    ) -> None:
        rows = -(-capacity // size) if options.get("forgets", True) else capacity
        super().__init__(rows, state_size, action_size, *args, **options)
        self._columns |= {name: np.zeros(rows, np.int64) for name in ("number", "holder")}
        self._rank, self._dealt = rank, np.zeros(size, np.int64)  # steps dealt to each
        self._number, self._holder = -1, ALL  # of the newest episode

    def begin(self, percept: Percept, name: str = "") -> None:
        """Start an episode, here or elsewhere; see `ReplayBuffer.begin`."""
        self._number += 1
        self._holder = _next_holder(self._dealt, self._forgets)
        if self._is_here:
            super().begin(percept, name)
        else:
            self._close()
            self._count(percept)

    def append(self, step: Transition, next_percept: Percept) -> None:
        """Add one step to the unfinished episode, which its holder checks; see `ReplayBuffer.append`."""
        if self._is_here:
            super().append(step, next_percept)
        else:
            self._count(next_percept)
        _deal(self._dealt, self._holder, 1)

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered here; `joined` makes a state of the whole ring from those of all parts."""
        return {**super().state_dict(), "dealt": self._dealt.copy(), "newest": self._number}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Keep what is dealt to this learner of a whole ring, its own or that of any number of learners.

        Raises:
            DataError: as `ReplayBuffer.load_state_dict`.
        """
        rows = np.asarray(state["episode_rows"], np.int64)
        first = np.cumsum(rows) - rows
        if len(state.get("dealt", ())) == len(self._dealt):
            holders, self._dealt = np.asarray(state["holder"])[first], np.array(state["dealt"], np.int64)
            self._number = int(state["newest"])
            number = np.asarray(state["number"])
        else:
            self._dealt.fill(0)
            holders = np.array([self._hold(int(steps)) for steps in rows - 1], np.int64)
            self._number = len(rows) - 1
            number = np.repeat(np.arange(len(rows)), rows)
        self._holder = int(holders[-1]) if len(holders) else ALL
        here = np.isin(holders, (ALL, self._rank))
        if self._forgets:  # parts may differ by an episode
            here &= np.cumsum((rows * here)[::-1])[::-1] <= self.capacity
        kept, names = np.repeat(here, rows), state.get("episode_names", [""] * len(rows))
        columns = {name: state[name] for name in self._columns if name in state}
        if "images" in state:
            columns["images"] = state["images"]
        columns |= {"number": number, "holder": np.repeat(holders, rows)}
        if wrong := [name for name, column in columns.items() if len(column) != len(kept)]:
            raise DataError(f"replay state {', '.join(wrong)}: expected {len(kept)} rows")
        own: dict[str, Any] = {name: np.asarray(column)[kept] for name, column in columns.items()}
        own |= {"episode_rows": rows[here], "episode_names": np.asarray(names, np.str_)[here]}
        own["undecided"] = np.intersect1d(np.asarray(state.get("undecided", ()), np.str_), own["episode_names"])
        own["open"] = int(bool(state["open"]) and bool(len(here)) and bool(here[-1]))
        super().load_state_dict({**own, "images_by": state.get("images_by")})

    @property
    def _is_here(self) -> bool:
        return self._holder in (ALL, self._rank)

    def _hold(self, steps: int) -> int:
        """Deal an episode of so many steps; return who holds it."""
        holder = _next_holder(self._dealt, self._forgets)
        _deal(self._dealt, holder, steps)
        return holder

    def _count(self, percept: Percept) -> None:
        """Note an observation that is kept elsewhere."""
        if self._moments is not None:
            self._moments.add(percept.state)

    def _add_row(self, percept: Percept, index: int, episode_rows: int) -> None:
        super()._add_row(percept, index, episode_rows)
        slot = (self._first + self._rows - 1) % self.capacity
        self._columns["number"][slot], self._columns["holder"][slot] = self._number, self._holder


def joined(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the state of a whole ring, which a `ReplayBuffer` of its capacity can load, from those of its parts."""
    starts = np.cumsum([0, *(len(state["reward"]) for state in states)])
    found: dict[int, tuple[int, int, str]] = {}
    for start, state in zip(starts, states, strict=False):
        place = int(start)
        for rows, name in zip(state["episode_rows"], state["episode_names"], strict=True):
            number = int(state["number"][place - start])
            found.setdefault(number, (place, int(rows), str(name)))
            place += int(rows)
    episodes = [found[number] for number in sorted(found)]
    order = np.concatenate([np.arange(0), *(np.arange(place, place + rows) for place, rows, _ in episodes)])
    by_row = [name for name in states[0] if name not in _NOT_BY_ROW]
    return {
        **{name: np.concatenate([state[name] for state in states])[order] for name in by_row},
        "episode_rows": np.array([rows for _, rows, _ in episodes], np.int64),
        "episode_names": np.array([name for _, _, name in episodes], np.str_),
        "undecided": np.unique(np.concatenate([np.asarray(state["undecided"], np.str_) for state in states])),
        "open": max(int(state["open"]) for state in states),
        **{name: states[0][name] for name in ("dealt", "newest", "images_by") if name in states[0]},
    }


def side_by_side(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the state of one ring with all episodes of several, those of the first one first; none is unfinished."""
    numbered, first = [], 0
    for state in states:
        rows = np.asarray(state["episode_rows"], np.int64)
        kept = {name: column for name, column in state.items() if name not in ("holder", "dealt", "newest")}
        numbered.append({**kept, "number": np.repeat(np.arange(first, first + len(rows)), rows), "open": 0})
        first += len(rows)
    return joined(numbered)


def _next_holder(dealt: np.ndarray, forgets: bool) -> int:
    return ALL if forgets and not dealt.any() else int(dealt.argmin())


def _deal(dealt: np.ndarray, holder: int, steps: int) -> None:
    dealt[slice(None) if holder == ALL else holder] += steps
