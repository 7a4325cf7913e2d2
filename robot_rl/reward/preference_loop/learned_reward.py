"""A reward learned from pairs, with the scale on which steps are rewarded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
from torch import Tensor

from robot_rl.reward.preference.bradley_terry import FEWEST_PAIRS, RewardEnsemble
from robot_rl.reward.preference.pairs import Preferences
from robot_rl.reward.preference.rewards import WORST, learn_reward


class LearnedReward(NamedTuple):
    """A reward of moments, with its scale.

    Attributes:
        accuracy: Share of the held-out decided pairs that it predicts; None if there is none.
        ensemble: Its zero and unit are arbitrary.
        low: Reward of the worst moments.
        high: Reward of the best.
    """

    accuracy: float | None
    ensemble: RewardEnsemble
    low: float
    high: float

    @classmethod
    def of(cls, known: Preferences, moments: Mapping[str, Tensor], seed: int, updates: int) -> Self | None:
        """Fit an ensemble to preferences, and set its scale over these moments; None if they are too few.

        Args:
            known: The preferences.
            moments: Features of each observation, by episode id.
            seed: Of the fit.
            updates: Gradient steps.
        """
        if lacking(known):
            return None
        ensemble, info = learn_reward(moments, known, seed, updates=updates)
        every = np.concatenate([ensemble(rows).numpy() for rows in moments.values()])
        return cls(info.accuracy, ensemble, float(np.quantile(every, WORST)), float(every.max()))

    def closeness(self, rows: Tensor) -> np.ndarray:
        """Return the reward of moments (N, n) between the worst, 0, and the best, 1; clipped there; (N,), float32."""
        share = (self.ensemble(rows).numpy() - self.low) / max(self.high - self.low, 1e-12)
        return np.clip(share, 0.0, 1.0).astype(np.float32)


def lacking(known: Preferences) -> str:
    """Return why no reward can be learned from so few preferences; empty if it can."""
    count = len(known.pairs)
    return "" if count >= FEWEST_PAIRS else f"{count} readable pairs so far, a reward needs {FEWEST_PAIRS}"
