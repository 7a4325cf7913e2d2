"""A success is k frames in a row that show it: single frames deceive, and an episode has a hundred of them."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view


def debounced(score: np.ndarray, consecutive: int) -> np.ndarray:
    """The least score of the last k frames; 0 before there are as many. Shape (R,).

    Args:
        score: Of each frame, in [0, 1], shape (R,).
        consecutive: k.
    """
    if len(score) < consecutive:
        return np.zeros(len(score))
    return np.concatenate([np.zeros(consecutive - 1), sliding_window_view(score, consecutive).min(axis=1)])


def first_at_least(score: np.ndarray, threshold: float) -> int | None:
    """The first frame whose score reaches the threshold; None if none does."""
    reached = np.flatnonzero(score >= threshold)
    return int(reached[0]) if len(reached) else None
