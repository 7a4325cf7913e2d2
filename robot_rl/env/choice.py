"""The last entry of an action where it is a choice: its values are evenly spaced from -1 to 1.

Several grippers make one choice together, of 3 to the power of their number: 9 for two, as in HIL-SERL. So one critic
values the joint choice; a sum of a value for each gripper could not express that one may open only where the other one
holds. Its digits to the base 3 are the grippers', the first of them most significant; 0, the middle, keeps all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

GRIPPER_CHOICES = 3
"""Of a gripper: -1 close, 0 keep, 1 open."""


def entry_of_choice(choice: Any, count: int) -> Any:
    """Return the entry of a choice 0 to count - 1, or of an array or tensor of them: 2 choice / (count - 1) - 1."""
    return 2.0 * choice / max(count - 1, 1) - 1.0


def choice_of_entry(entry: float, count: int) -> int:
    """Return the choice, 0 to count - 1, that an entry in [-1, 1] is nearest to."""
    return int(_nearest(entry, count))


def nearest_entries(entries: np.ndarray, count: int) -> np.ndarray:
    """Return the entry of the choice, of `count`, that each of an array is nearest to."""
    nearest: np.ndarray = entry_of_choice(_nearest(entries, count), count)
    return nearest


def grippers_of(choices: int) -> int:
    """Return how many grippers make so many choices together; 0 if none do."""
    return next((n for n in range(1, choices) if GRIPPER_CHOICES**n == choices), 0)


def join_grippers(entries: Sequence[float]) -> float:
    """Return the one entry of the joint choice of several grippers, from the entry of each in [-1, 1]."""
    choice = 0
    for entry in entries:
        choice = GRIPPER_CHOICES * choice + choice_of_entry(entry, GRIPPER_CHOICES)
    return float(entry_of_choice(choice, GRIPPER_CHOICES ** len(entries)))


def split_grippers(entry: float, grippers: int) -> list[float]:
    """Return the entry of each gripper, -1, 0 or 1, from that of their joint choice."""
    choice = choice_of_entry(entry, GRIPPER_CHOICES**grippers)
    digits = [choice // GRIPPER_CHOICES**place % GRIPPER_CHOICES for place in reversed(range(grippers))]
    return [float(entry_of_choice(digit, GRIPPER_CHOICES)) for digit in digits]


def _nearest(entry: Any, count: int) -> Any:
    """Return the choice, of `count`, that an entry is nearest to, or those of an array of them."""
    return np.rint((entry + 1.0) * ((count - 1) / 2))
