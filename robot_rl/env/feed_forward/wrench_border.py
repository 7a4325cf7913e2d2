"""How hard a feed-forward wrench may push towards the border of where the tcp may be.

A set-point inside the border holds the arm inside it, as the controller pulls the arm back to the set-point. A force F
that is added moves the arm F / K further, with the controller's stiffness K. So the part of F that points outwards is
at most `BORDER_STIFFNESS` times the room that is left: an arm that is no softer than that comes to rest inside. At the
border, and beyond it, nothing of it points outwards.
"""

from __future__ import annotations

import numpy as np

BORDER_STIFFNESS = 1000.0
"""Force towards the border per room that is left [N/m]."""
BORDER_TURN_STIFFNESS = 50.0
"""The same of torque and turn [Nm/rad]."""
LOOK_AHEAD = 0.05
"""The room is what is left where the tcp will be in that time, at its present speed [s]."""


def held_back(push: np.ndarray, low: np.ndarray, high: np.ndarray, places: np.ndarray, stiffness: float) -> np.ndarray:
    """Return a force, or torque, that points out of a box at most as hard as the room there allows.

    Args:
        push: Along the axes of the box [N, or Nm], shape (n,).
        low: Its lower border [m, or rad], shape (n,).
        high: Its upper border.
        places: All places that count, e.g. where the tcp is and where it is sent, shape (m, n); the farthest out does.
        stiffness: Per room [N/m, or Nm/rad].
    """
    below = np.maximum(places.min(axis=0) - low, 0.0)
    above = np.maximum(high - places.max(axis=0), 0.0)
    return np.clip(push, -stiffness * below, stiffness * above)
