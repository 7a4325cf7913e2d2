"""Suggestions of settings by Optuna's tree-structured Parzen estimator (Bergstra 2011).

The suggestions of a round follow from the seed, the number of the round and the scores of the rounds before; nothing is
kept between two calls, so a sweep that is continued suggests the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from robot_rl.errors import PluginError
from robot_rl.sweep.space import Range, Space, ValueList

if TYPE_CHECKING:
    import optuna

SWEEP_INSTALL = "a sweep needs optuna; install it with: pip install 'robot_rl[sweep]'"
STARTUP = 8
"""Scored trials before which settings are drawn at random."""


def check_installed() -> None:
    """Raise if Optuna is missing.

    Raises:
        PluginError: with the command that installs it.
    """
    _optuna()


def suggest(
    space: Space, scored: Sequence[tuple[Mapping[str, Any], float]], count: int, seed: int, round_number: int
) -> list[dict[str, Any]]:
    """Return the settings of the trials of a round, by key.

    Args:
        space: What varies.
        scored: Settings and score of each earlier trial, higher is better.
        count: How many to suggest.
        seed: Of the sweep.
        round_number: From 0.
    """
    optuna = _optuna()
    own = int(np.random.SeedSequence((seed, round_number)).generate_state(1)[0])
    sampler = optuna.samplers.TPESampler(seed=own, n_startup_trials=STARTUP)
    study = _study(space, scored, sampler)
    distributions = _distributions(space)
    return [dict(study.ask(distributions).params) for _ in range(count)]


def importance(space: Space, scored: Sequence[tuple[Mapping[str, Any], float]], seed: int) -> dict[str, float]:
    """Return the share of each setting in what distinguishes good trials (PED-ANOVA, Watanabe 2023), largest first.

    Empty where there are too few trials, or all have the same score.
    """
    if len(scored) < STARTUP or len({score for _, score in scored}) < 2:
        return {}
    optuna = _optuna()
    study = _study(space, scored, optuna.samplers.RandomSampler(seed=seed))
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {key: float(value) for key, value in found.items() if math.isfinite(value)}


def _study(
    space: Space, scored: Sequence[tuple[Mapping[str, Any], float]], sampler: optuna.samplers.BaseSampler
) -> optuna.Study:
    optuna = _optuna()
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = _distributions(space)
    for chosen, score in scored:
        study.add_trial(optuna.trial.create_trial(params=dict(chosen), distributions=distributions, value=score))
    return study


def _distributions(space: Space) -> dict[str, Any]:
    return {key: _distribution(axis) for key, axis in space.axes.items()}


def _distribution(axis: Range | ValueList) -> Any:
    distributions = _optuna().distributions
    if isinstance(axis, ValueList):
        return distributions.CategoricalDistribution(axis.values)
    if axis.whole:
        return distributions.IntDistribution(int(axis.low), int(axis.high), log=axis.log, step=int(axis.step or 1))
    return distributions.FloatDistribution(axis.low, axis.high, log=axis.log, step=axis.step)


def _optuna() -> Any:
    try:
        import optuna  # here, as it is an extra and takes half a second
    except ImportError as error:
        raise PluginError(SWEEP_INSTALL) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
