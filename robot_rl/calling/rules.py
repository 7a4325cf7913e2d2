"""Rules that predict, from what has happened in an episode so far, that the policy will fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from robot_rl.env.environment import EnvironmentSpec

SMOOTHED = 5
"""Steps over which values are averaged: a single one is noisy."""


@dataclass(frozen=True, eq=False)
class ValueTrace:
    """What a rule may look at.

    Attributes:
        values: Return that the critics expect from each observation on, as a share of the largest of the task, from the
            first to the one after the newest step; shape (T + 1,). NaN where it is not known.
        max_steps: Step limit of the task.
    """

    values: np.ndarray
    max_steps: int


def expected_share(values: np.ndarray, spec: EnvironmentSpec) -> np.ndarray:
    """Return expected returns as shares of the largest return of a task; as they are where that is not known."""
    largest = 1.0 if spec.return_range is None else spec.return_range[1]
    return values / largest if largest > 0.0 else values


Rule = Callable[[ValueTrace], np.ndarray]
"""Returns the risk after each step, shape (T,), larger for a likelier failure. The risk after a step depends on nothing
that comes later."""


def time_rule(trace: ValueTrace) -> np.ndarray:
    """Return the share of the step limit that has passed: what takes long is stuck."""
    return np.arange(1, len(trace.values)) / trace.max_steps


def value_rule(trace: ValueTrace) -> np.ndarray:
    """Return by how much the expected return has fallen below its largest so far: something went wrong."""
    smooth = _smoothed(trace.values)
    fall: np.ndarray = np.maximum.accumulate(smooth) - smooth
    return fall[1:]


def doubt_rule(trace: ValueTrace) -> np.ndarray:
    """Return 1 minus the expected return, weighed by the time that has passed: late, and success still not in sight."""
    return (1.0 - _smoothed(trace.values)[1:]) * time_rule(trace)


RULES: Mapping[str, Rule] = MappingProxyType({"time": time_rule, "value": value_rule, "doubt": doubt_rule})
"""By name."""


def _smoothed(values: np.ndarray) -> np.ndarray:
    """Return the mean of each value and those before it, of at most `SMOOTHED`; shape (T + 1,)."""
    sums = np.concatenate(([0.0], np.cumsum(values)))
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(ends - SMOOTHED, 0)
    mean: np.ndarray = (sums[ends] - sums[starts]) / (ends - starts)
    return mean
