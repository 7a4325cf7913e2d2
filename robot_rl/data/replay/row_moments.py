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

    def state_dict(self) -> dict[str, Any]:
        """Return copies of all that the next moments depend on."""
        return {"count": self.count, "mean": self.mean.copy(), "squares": self._squares.copy()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self.count = int(state["count"])
        self.mean, self._squares = np.array(state["mean"], float), np.array(state["squares"], float)
