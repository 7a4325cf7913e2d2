"""The facts of one control period of an environment, typed: `StepInfo`, and `EpisodeStart` for the reset before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from robot_rl.data.schema import Observation, Step
from robot_rl.geometry import Pose


@dataclass(frozen=True, eq=False)
class EpisodeStart:
    """A new episode.

    Attributes:
        observation: The first observation.
        seed: The seed from which everything random in the episode follows.
        stamp_obs: When the observation was measured [ns].
        T_base_reset: Pose of the tcp at the start, in the base frame; of several arms, the first one's; None where
            there is no arm.
        arms: The same of each of several arms, by name.
    """

    observation: Observation
    seed: int
    stamp_obs: int
    T_base_reset: Pose | None = None
    arms: Mapping[str, Pose] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class StepInfo:
    """The result of one step.

    Attributes:
        recorded: The step as it is recorded: what was observed before, the action, the reward, and whether the episode
            ended. Its `reward_source` names who validated the step.
        observation: The observation that the step led to.
        stamp_obs: When that observation was measured [ns].
        success: Whether the task is done.
        failure: Why the episode ended without success, or None.
        overruled: Name of the judge whose result an operator took back, or None.
        cut: Why the episode was cut without a result, or None.
        force_peak: Largest filtered contact force in the step [N].
        overruns: Control deadlines of the episode that were missed by more than a period.
        metrics: The task's own measures, e.g. the lateral error of a peg.
        clipped: Distance by which workspace and keep-out moved the set-point [m, rad], shape (6,), side by side for
            several arms; None where there is no arm.
    """

    recorded: Step
    observation: Observation
    stamp_obs: int
    success: bool
    failure: str | None = None
    overruled: str | None = None
    cut: str | None = None
    force_peak: float = 0.0
    overruns: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    clipped: np.ndarray | None = None

    @property
    def ended(self) -> bool:
        """Whether the episode ended with this step."""
        return self.recorded.terminated or self.recorded.truncated
