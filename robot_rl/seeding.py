"""The seeds of all random streams, made in one place so that no two streams are the same.

An episode's seed follows from what the episode is for, the run's seed and its number, by numpy's `SeedSequence`
(O'Neill's hash). Demonstrations, training, the points of the learning curve and the final evaluation therefore never
share a reset, whatever the seeds are.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What an episode is for; `WARMUP` numbers steps whose actions are drawn, `HINDSIGHT` played episodes."""

    DEMONSTRATION = 0
    TRAINING = 1
    EVALUATION = 2
    CURVE = 3
    FRAMES = 4
    WARMUP = 5
    HINDSIGHT = 6


def episode_seed(purpose: Purpose, seed: int, number: int) -> int:
    """Return the seed of an episode, in [0, 2^31).

    Args:
        purpose: What the episode is for.
        seed: The run's seed; for evaluation the evaluation's own, so that all runs are evaluated on the same resets.
        number: Position of the episode among those of its purpose.
    """
    return int(np.random.SeedSequence((int(purpose), seed, number)).generate_state(1)[0] >> 1)
