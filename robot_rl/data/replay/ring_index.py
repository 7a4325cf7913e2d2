"""Which rows of a ring are whose: the episodes that it holds, oldest first, and which of them are not decided yet.

Which rows of a ring can be sampled, oldest first. And the columns of a ring.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from robot_rl.data.schema import OPERATOR_SOURCES
from robot_rl.errors import DataError


class SlotQueue:
    """First in, first out, with O(1) access by rank.

    Args:
        capacity: Most slots that it can hold.
    """

    def __init__(self, capacity: int) -> None:
        self._slots = np.zeros(capacity, np.int64)
        self._start = 0
        self._count = 0

    def __len__(self) -> int:
        """Slots held."""
        return self._count

    def push(self, slot: int) -> None:
        """Append a slot, as the newest."""
        self._slots[(self._start + self._count) % len(self._slots)] = slot
        self._count += 1

    def insert(self, slot: int, first: int) -> None:
        """Put a slot between those before and behind it, counted from slot `first`; copies all that are held."""
        held, capacity = self.at(np.arange(self._count)), len(self._slots)
        rank = np.searchsorted((held - first) % capacity, (slot - first) % capacity)
        self.fill(np.insert(held, rank, slot))

    def drop(self, count: int) -> None:
        """Forget the `count` oldest."""
        self._start = (self._start + count) % len(self._slots)
        self._count -= count

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """Slots of the given ranks, 0 the oldest."""
        slots: np.ndarray = self._slots[(self._start + ranks) % len(self._slots)]
        return slots

    def fill(self, slots: np.ndarray) -> None:
        """Hold exactly `slots`, oldest first."""
        self._start, self._count = 0, len(slots)
        self._slots[: len(slots)] = slots


class WindowStarts:
    """Slots at which windows begin that can be sampled, oldest first: all, and apart those of an operator's steps.

    Args:
        capacity: Most slots.
        source: Who chose the action in each slot of the ring; it is looked at and never changed.
    """

    def __init__(self, capacity: int, source: np.ndarray) -> None:
        self.all, self.operator, self._source = SlotQueue(capacity), SlotQueue(capacity), source

    def push(self, slot: int) -> None:
        """Append a slot, as the newest."""
        self.all.push(slot)
        if self._source[slot] in OPERATOR_SOURCES:
            self.operator.push(slot)

    def insert(self, slot: int, first: int) -> None:
        """Put a slot in its place; see `SlotQueue.insert`."""
        self.all.insert(slot, first)
        if self._source[slot] in OPERATOR_SOURCES:
            self.operator.insert(slot, first)

    def drop(self, count: int) -> None:
        """Forget the `count` oldest of all."""
        self.operator.drop(len(self._of_operator(self.all.at(np.arange(count)))))
        self.all.drop(count)

    def fill(self, slots: np.ndarray) -> None:
        """Hold exactly `slots`, oldest first."""
        self.all.fill(slots)
        self.operator.fill(self._of_operator(slots))

    def _of_operator(self, slots: np.ndarray) -> np.ndarray:
        return slots[np.isin(self._source[slots], OPERATOR_SOURCES)]


class EpisodeList:
    """Lengths and names of consecutive episodes; one of T steps takes T + 1 rows."""

    def __init__(self) -> None:
        self._rows: deque[int] = deque()
        self._names: deque[str] = deque()  # empty where no label will come
        self.undecided: set[str] = set()
        """Names of those whose last step is undecided."""

    def begin(self, name: str) -> None:
        """Add an episode of one row."""
        self._rows.append(1)
        self._names.append(name)

    def grow(self) -> None:
        """Add a row to the newest episode."""
        self._rows[-1] += 1

    @property
    def newest(self) -> tuple[str, int]:
        """Name and rows of the newest one."""
        return self._names[-1], self._rows[-1]

    def forget_newest(self) -> None:
        """Remove the newest episode."""
        self._rows.pop()
        self._names.pop()

    def forget_oldest(self) -> tuple[int, int]:
        """Remove the oldest episode; return its number of rows, and of steps that are not undecided."""
        rows, name = self._rows.popleft(), self._names.popleft()
        steps = rows - 1 - (name in self.undecided)
        self.undecided.discard(name)
        return rows, steps

    def find(self, name: str) -> tuple[int, int] | None:
        """Rows before the episode of that name, and its own; None if there is none."""
        if not name or name not in self._names:
            return None
        number = self._names.index(name)
        return sum(islice(self._rows, number)), self._rows[number]

    def steps(self, length: int, terminated: np.ndarray) -> np.ndarray:
        """Of all rows, which hold a step that is not undecided and begins a whole window; shape (rows,), bool.

        Args:
            length: Steps of a window; one that terminates sooner is whole too.
            terminated: Of all rows, whether nothing follows their step, shape (rows,).
        """
        found = np.ones(sum(self._rows), bool)
        ends = np.cumsum(self._rows, dtype=np.int64)
        found[ends - 1] = False  # last rows hold an observation only
        found[[end - 2 for end, name in zip(ends, self._names, strict=True) if name in self.undecided]] = False
        if length > 1:
            for end, rows, name in zip(ends, self._rows, self._names, strict=True):
                first, behind = end - rows, end - 1 - (name in self.undecided)
                if behind > first and not terminated[behind - 1]:
                    found[max(first, behind - length + 1) : behind] = False
        return found

    def state_dict(self) -> dict[str, Any]:
        """All of it, as numpy arrays."""
        return {
            "episode_rows": np.array(self._rows, np.int64),
            "episode_names": np.array(self._names, np.str_),
            "undecided": np.array(sorted(self.undecided), np.str_),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace it; a state that was saved before there were labels has no names."""
        self._rows = deque(int(rows) for rows in state["episode_rows"])
        self._names = deque(str(name) for name in state.get("episode_names", [""] * len(self._rows)))
        self.undecided = {str(name) for name in state.get("undecided", ())}


def ring_columns(rows: int, state_size: int, action_size: int, *, shaped: bool, origins: bool) -> dict[str, np.ndarray]:
    """Return the columns of a ring of so many rows, of which row t of an episode holds its step t.

    Args:
        rows: In each column.
        state_size: Elements of a packed observation.
        action_size: Elements of an action.
        shaped: Whether observations have a potential.
        origins: Whether it knows which steps are simulated.
    """
    columns = {
        "state": np.zeros((rows, state_size), np.float32),
        "action": np.zeros((rows, action_size), np.float32),
        "reward": np.zeros(rows, np.float32),
        "terminated": np.zeros(rows, bool),
        "source": np.zeros(rows, np.int8),
        "index": np.zeros(rows, np.int64),  # position in the episode
        "run_offset": np.zeros(rows, np.int64),  # steps since control last changed hands
        "run_length": np.zeros(rows, np.int64),  # at the first row of a run: its steps so far
        "success_at": np.zeros(rows, np.int64),  # at the first row of an episode that succeeded: its steps
        "goal_at": np.zeros(rows, np.int64),  # in such an episode: position of the row of the step's goal
    }
    if shaped:
        columns["potential"] = np.zeros(rows, np.float32)
    if origins:
        columns["simulated"] = np.zeros(rows, bool)
    return columns


def complete_state(state: Mapping[str, Any], columns: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return the saved state of a ring, with what earlier versions did not save.

    Args:
        state: As it was saved; then nothing was simulated, and goals were where episodes succeeded.
        columns: Of the ring that it is for.

    Raises:
        DataError: if it lacks a column, or one has rows of another shape than here, or another number of them.
    """
    if missing := {*columns, "episode_rows", "open"} - {*state, "simulated", "goal_at"}:
        raise DataError(f"replay state lacks {sorted(missing)}")
    rows = np.asarray(state["episode_rows"], np.int64)
    for name, column in columns.items():
        expected = (int(rows.sum()), *column.shape[1:])
        if name in state and np.shape(state[name]) != expected:
            raise DataError(f"replay state {name}: shape {np.shape(state[name])}, expected {expected}")
    success_at = np.asarray(state["success_at"])[np.cumsum(rows) - rows]
    return {"simulated": np.zeros(rows.sum(), bool), "goal_at": np.repeat(success_at, rows), **state}


def longer(column: np.ndarray, rows: int) -> np.ndarray:
    """Return a copy of a column with so many rows, the new ones 0."""
    copied = np.zeros((rows, *column.shape[1:]), column.dtype)
    copied[: len(column)] = column
    return copied
