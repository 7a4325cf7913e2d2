"""The memory of derived transitions: recorded steps as they would have been if other goals had been wanted.

They are kept apart from what happened: each is a row by itself, with its own goal, reward and end, and none of them is
ever written into a store of episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from robot_rl.data.replay.percept import check_reward
from robot_rl.data.replay.sample import Sample
from robot_rl.errors import DataError


class Relabelled(NamedTuple):
    """N derived transitions.

    Attributes:
        state: What networks see at the step, with the other goal, shape (N, width), float32.
        action: Executed, shape (N, action_size), float32.
        reward: For the other goal, shape (N,), float32.
        terminated: Whether nothing would follow, shape (N,), bool.
        following: As `state`, after the step.
    """

    state: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    following: np.ndarray


class HindsightMemory:
    """A ring of derived transitions; the oldest go when it is full.

    Args:
        capacity: Most transitions.
        width: Elements of what networks see, histories stacked.
        action_size: Elements of an action.
        rewards: Smallest and largest possible reward of a step; others are refused. None takes any.
    """

    def __init__(self, capacity: int, width: int, action_size: int, rewards: tuple[float, float] | None = None) -> None:
        self.capacity, self._rewards = capacity, rewards
        self._columns = Relabelled(
            np.zeros((capacity, width), np.float32),
            np.zeros((capacity, action_size), np.float32),
            np.zeros(capacity, np.float32),
            np.zeros(capacity, bool),
            np.zeros((capacity, width), np.float32),
        )
        self._first = self._count = 0

    def __len__(self) -> int:
        """Transitions that can be sampled."""
        return self._count

    def add(self, rows: Relabelled) -> None:
        """Add transitions.

        Raises:
            DataError: if a shape is wrong, a value not finite, or a reward leaves its limits; nothing is stored then.
        """
        checked = self._checked(rows)
        total = len(checked.reward)
        if total > self.capacity:
            raise DataError(
                f"{total} derived transitions at once, the memory holds {self.capacity}; raise the capacity"
            )
        slots = (self._first + self._count + np.arange(total)) % self.capacity
        for column, values in zip(self._columns, checked, strict=True):
            column[slots] = values
        surplus = max(0, self._count + total - self.capacity)
        self._first = (self._first + surplus) % self.capacity
        self._count += total - surplus

    def gather(self, ranks: np.ndarray, discount: float) -> Sample:
        """Return the transitions of these ranks, 0 the oldest, shape (count,), with windows of one step."""
        state, action, reward, terminated, following = (
            column[(self._first + ranks) % self.capacity] for column in self._columns
        )
        return Sample(state, action, reward, np.float32(discount) * ~terminated, following)

    def state_dict(self) -> dict[str, Any]:
        """Return the transitions, oldest first."""
        slots = (self._first + np.arange(self._count)) % self.capacity
        return {name: column[slots] for name, column in self._columns._asdict().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replace all by what `state_dict` returned; the next sample is then the same.

        Raises:
            DataError: if it does not fit.
        """
        if missing := {*Relabelled._fields} - state.keys():
            raise DataError(f"state of derived transitions lacks {sorted(missing)}")
        self._first = self._count = 0
        self.add(Relabelled(**{name: state[name] for name in Relabelled._fields}))

    def _checked(self, rows: Relabelled) -> Relabelled:
        total = len(rows.reward)
        for name, column, values in zip(Relabelled._fields, self._columns, rows, strict=True):
            if np.shape(values) != (total, *column.shape[1:]):
                expected = (total, *column.shape[1:])
                raise DataError(f"derived transitions: {name} has shape {np.shape(values)}, expected {expected}")
            if not np.isfinite(values).all():
                raise DataError(f"derived transitions: {name} has a NaN or an infinity")
        for reward in (rows.reward.min(), rows.reward.max()) if total else ():
            check_reward(float(reward), self._rewards)
        return rows
