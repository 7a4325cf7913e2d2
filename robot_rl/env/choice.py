"""The last entry of an action where it is a choice: its values are evenly spaced from -1 to 1."""

from __future__ import annotations

from typing import Any

import numpy as np

GRIPPER_CHOICES = 3
"""Of a gripper: -1 close, 0 keep, 1 open."""


def entry_of_choice(choice: Any, count: int) -> Any:
    """Return the entry of a choice 0 to count - 1, or of an array or tensor of them: 2 choice / (count - 1) - 1."""
    return 2.0 * choice / max(count - 1, 1) - 1.0


def choice_of_entry(entry: float, count: int) -> int:
    """Return the choice, 0 to count - 1, that an entry in [-1, 1] is nearest to."""
    return int(np.rint((entry + 1.0) * ((count - 1) / 2)))
