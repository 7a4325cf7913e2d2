"""What memories of recorded steps have in common: ranks of transitions are drawn, then gathered."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from robot_rl.data.replay.sample import Sample
from robot_rl.errors import DataError


class SampledMemory(ABC):
    """A memory whose transitions are counted by rank, and those of operators by a rank of their own."""

    @abstractmethod
    def __len__(self) -> int:
        """Transitions that can be sampled."""

    @property
    @abstractmethod
    def operator_count(self) -> int:
        """Transitions whose action was not chosen by the policy."""

    @abstractmethod
    def draw(self, size: tuple[int, ...], rng: np.random.Generator, others: int = 0) -> np.ndarray:
        """Return ranks of transitions, of all of these and `others` that are counted behind them."""

    @abstractmethod
    def gather(
        self,
        ranks: np.ndarray,
        rng: np.random.Generator,
        *,
        n_step: int,
        discount: float,
        history: tuple[int, ...],
        operator_only: bool = False,
    ) -> Sample:
        """Return the transitions of these ranks, 0 the oldest, shape (count,); see `sample`. `rng` crops images."""

    def sample(
        self,
        count: int,
        rng: np.random.Generator,
        *,
        n_step: int,
        discount: float,
        history: tuple[int, ...],
        operator_only: bool = False,
    ) -> Sample:
        """Transitions drawn with replacement, as `draw` does; those of operators uniformly.

        Args:
            count: How many.
            rng: The only source of randomness.
            n_step: Most steps in a window.
            discount: Per step.
            history: Ages [steps] of the observations to stack; before the first one, the first is repeated.
            operator_only: Draw only from steps that the policy did not choose.

        Raises:
            DataError: if there is nothing to draw from.
        """
        if (self.operator_count if operator_only else len(self)) == 0:
            raise DataError(f"replay has no {'operator ' if operator_only else ''}transitions to sample")
        ranks = rng.integers(self.operator_count, size=count) if operator_only else self.draw((count,), rng)
        return self.gather(ranks, rng, n_step=n_step, discount=discount, history=history, operator_only=operator_only)
