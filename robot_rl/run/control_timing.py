"""Regularity of control from recorded stamps: the period, and the age of the observation at the action."""

from __future__ import annotations

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.data.schema import Episode, Observation, Step

MS_PER_NS = 1e3 / NS_PER_S


class ControlTiming:
    """An observer that keeps the stamps of all steps.

    Args:
        period: Intended time between commands [s].
    """

    def __init__(self, period: float) -> None:
        self._period = period * 1e3
        self.period_errors: list[np.ndarray] = []
        """Of each episode, how far the time between commands was from the period [ms]."""
        self._ages: list[np.ndarray] = []

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Do nothing: whole episodes are measured."""

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Do nothing: whole episodes are measured."""

    def on_end(self, episode: Episode, result: object) -> None:
        """Keep the stamps of an episode."""
        del result  # is about the task
        self.period_errors.append(np.abs(np.diff(episode.stamp_action) * MS_PER_NS - self._period))
        self._ages.append((episode.stamp_action - episode.stamp_obs[:-1]) * MS_PER_NS)

    def summary(self) -> dict[str, dict[str, float] | None]:
        """Return percentiles and maximum of `period_error_ms` between commands and of `observation_to_action_ms`.

        The latter runs from the measurement, so the sensors' own delay is in it.
        """
        return {"period_error_ms": spread(self.period_errors), "observation_to_action_ms": spread(self._ages)}


def spread(parts: list[np.ndarray]) -> dict[str, float] | None:
    """Return percentiles `p50` and `p99`, and `max`, of all values; None if there are none."""
    values = np.concatenate(parts) if parts else np.zeros(0)
    if not len(values):
        return None
    p50, p99 = np.percentile(values, [50, 99]).tolist()
    return {"p50": p50, "p99": p99, "max": float(values.max())}
