"""The choice of pairs to query: those about which the members of the ensemble disagree most.

As in PEBBLE (Lee 2021), whose disagreement is the standard deviation of P(first is preferred) over the members.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from torch import Tensor

from robot_rl.config.labelling import LabelConfig
from robot_rl.reward.labels.units import Pair, random_pairs
from robot_rl.reward.preference.bradley_terry import RewardEnsemble
from robot_rl.reward.preference.rewards import segment_features


class Choice(NamedTuple):
    """Pairs that were chosen.

    Attributes:
        pairs: The pairs.
        disagreement: About them, mean; None without an ensemble.
        drawn: About all that they were chosen from, mean; None without an ensemble.
    """

    pairs: list[Pair]
    disagreement: float | None
    drawn: float | None


def choose_pairs(
    lengths: Mapping[str, int],
    config: LabelConfig,
    known: Collection[Pair],
    *,
    count: int,
    candidates: int,
    rng: np.random.Generator,
    ensemble: RewardEnsemble | None,
    moments: Mapping[str, Tensor],
) -> Choice:
    """Choose up to `count` pairs that are not known, in either order; fewer if there are no more.

    Args:
        lengths: Steps of each episode, by its id.
        config: Of the labeller: share of ends, length of segments.
        known: Pairs that were queried before.
        count: How many.
        candidates: Pairs drawn for each one.
        rng: Source of all randomness.
        ensemble: Whose disagreement decides; None takes the first that are drawn.
        moments: Features of each observation, by episode id; for an ensemble.

    Raises:
        DataError: if there are no two moments, or segments, that differ.
    """
    seen = {frozenset(pair) for pair in known}
    drawn: list[Pair] = []
    for pair in random_pairs(lengths, replace(config, pairs=count * candidates), rng):
        if frozenset(pair) not in seen:
            seen.add(frozenset(pair))
            drawn.append(pair)
    if ensemble is None or not drawn:
        return Choice(drawn[:count], None, None)
    spread = ensemble.pair_disagreement(*segment_features(moments, drawn)).numpy()
    best = np.argsort(-spread, kind="stable")[:count]
    return Choice([drawn[index] for index in best], float(spread[best].mean()), float(spread.mean()))
