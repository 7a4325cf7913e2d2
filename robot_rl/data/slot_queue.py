"""Which rows of a ring can be sampled, oldest first."""

from __future__ import annotations

import numpy as np


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
        """Appends a slot, as the newest."""
        self._slots[(self._start + self._count) % len(self._slots)] = slot
        self._count += 1

    def insert(self, slot: int, first: int) -> None:
        """Puts a slot between those before and behind it, counted from slot `first`; copies all that are held."""
        held, capacity = self.at(np.arange(self._count)), len(self._slots)
        rank = np.searchsorted((held - first) % capacity, (slot - first) % capacity)
        self.fill(np.insert(held, rank, slot))

    def drop(self, count: int) -> None:
        """Forgets the `count` oldest."""
        self._start = (self._start + count) % len(self._slots)
        self._count -= count

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """Slots of the given ranks, 0 the oldest."""
        slots: np.ndarray = self._slots[(self._start + ranks) % len(self._slots)]
        return slots

    def fill(self, slots: np.ndarray) -> None:
        """Holds exactly `slots`, oldest first."""
        self._start, self._count = 0, len(slots)
        self._slots[: len(slots)] = slots
