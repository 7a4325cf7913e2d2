"""Potential-based shaping of rewards (Ng 1999): the one formula, for replay and for overlays of rewards alike."""

from __future__ import annotations

import numpy as np


def shaping_term(discount: np.ndarray, potential: np.ndarray, next_potential: np.ndarray) -> np.ndarray:
    """Return F = gamma^m Phi(s') - Phi(s); with R + F as the reward, the best policy stays the best.

    Args:
        discount: gamma^m of windows of m steps; 0 where nothing follows, as otherwise the end of the episode would be
            rewarded by itself.
        potential: Phi where the window starts.
        next_potential: Phi where it ends.
    """
    return discount * next_potential - potential
