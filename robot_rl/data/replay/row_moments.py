"""Running mean and deviation of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class RowMoments:
    """Mean and standard deviation of all rows so far, element by element (Welford 1962).

    Args:
        size: Elements of a row.

    Attributes:
        count: Rows so far.
        mean: Shape (size,), float64.
    """

    def __init__(self, size: int) -> None:
        self.count, self.mean, self._squares = 0, np.zeros(size), np.zeros(size)

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation, shape (size,); 1 before there are two rows."""
        if self.count < 2:
            return np.ones_like(self.mean)
        deviation: np.ndarray = np.sqrt(self._squares / self.count)
        return deviation

    def add(self, row: np.ndarray) -> None:
        """Count a row, shape (size,)."""
        self.count += 1
        before = row - self.mean
        self.mean += before / self.count
        self._squares += before * (row - self.mean)

    def forget(self, rows: np.ndarray) -> None:
        """Take back rows that were counted, shape (N, size); the reverse of merging two sets (Chan et al. 1983)."""
        gone = len(rows)
        if not gone:
            return
        if (left := self.count - gone) <= 0:
            self.count, self.mean, self._squares = 0, np.zeros_like(self.mean), np.zeros_like(self._squares)
            return
        rows = rows.astype(float)
        theirs = rows.mean(axis=0)
        mean = self.mean + (self.mean - theirs) * (gone / left)
        squares = (
            self._squares - np.square(rows - theirs).sum(axis=0) - (theirs - mean) ** 2 * (left * gone / self.count)
        )
        self.count, self.mean, self._squares = left, mean, np.maximum(squares, 0.0)  # not negative by rounding

    def state_dict(self) -> dict[str, Any]:
        """Return copies of all that the next moments depend on."""
        return {"count": self.count, "mean": self.mean.copy(), "squares": self._squares.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.count = int(state["count"])
        self.mean, self._squares = np.array(state["mean"], float), np.array(state["squares"], float)
