"""Chunks of actions as one vector: what actor and critics of a policy see that decides once for several steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ChunkLayout:
    """Where the actions of a chunk stand in one vector (Q-chunking, Li 2025).

    The continuous entries come first, step after step, then one choice for the whole chunk, e.g. of a gripper.

    Attributes:
        length: Steps of a chunk, h; 1: the vector is the action.
        action_size: Entries of an action, d.
        choice: Whether the last entry of an action is a discrete choice.
    """

    length: int
    action_size: int
    choice: bool = False

    @property
    def size(self) -> int:
        """Entries of the vector."""
        return self.length * (self.action_size - self.choice) + self.choice

    def join(self, actions: np.ndarray) -> np.ndarray:
        """Return the vectors (N, size) of actions (N, h, d); the choice is NaN where it changes within a chunk."""
        count, free = len(actions), self.action_size - self.choice
        held = np.where((actions[:, :, free:] == actions[:, :1, free:]).all(axis=1), actions[:, 0, free:], np.nan)
        moves = actions[:, :, :free].reshape(count, self.length * free)
        return np.concatenate([moves, held.astype(actions.dtype)], axis=1)

    def split(self, vector: np.ndarray) -> np.ndarray:
        """Return the actions (h, d) of a vector (size,); the choice is held throughout."""
        free = self.length * (self.action_size - self.choice)
        choice = np.broadcast_to(vector[free:], (self.length, int(self.choice)))
        return np.concatenate([vector[:free].reshape(self.length, self.action_size - self.choice), choice], axis=1)

    def executed(self, actions: np.ndarray, steps: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the vectors of windows of recorded actions, some of which end sooner because the episode terminated.

        What would follow does not count, so critics must not care for it: it is drawn uniformly, but for the choice.

        Args:
            actions: Shape (N, h, d); those behind the end are overwritten.
            steps: Of each window, 1 to h, shape (N,).
            rng: Source of what is drawn.
        """
        past = np.arange(self.length) >= steps[:, None]
        if past.any():
            free = self.action_size - self.choice
            first = np.broadcast_to(actions[:, :1, free:], (*actions.shape[:2], int(self.choice)))[past]
            drawn = rng.uniform(-1.0, 1.0, (len(first), free))
            actions[past] = np.concatenate([drawn, first], axis=1)  # a choice is held
        return self.join(actions)

    def alike(self, source: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Return how many of the first steps of windows the same hands chose, float32 of shape (N,).

        Args:
            source: Of each action, shape (N, h).
            left: Steps from the window's first one to the end of its episode, shape (N,).
        """
        same = (source == source[:, :1]) & (np.arange(self.length) < left[:, None])
        steps: np.ndarray = np.logical_and.accumulate(same, axis=1).sum(axis=1, dtype=np.float32)
        return steps

    def completed(self, index: int, terminated: bool) -> range:
        """Return how many steps ago the windows began that step `index` of an episode completes, longest ago first."""
        longest = min(index, self.length - 1)
        return range(longest, -1, -1) if terminated else range(longest, self.length - 2, -1)
