"""Who watches episodes as they are played (recording, replay, curves, films, pages), and what came of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from robot_rl.data.schema import Episode, Observation, Step


@dataclass(frozen=True)
class EpisodeResult:
    """An episode in numbers.

    Attributes:
        success: Whether the task was done.
        failure: Why it ended otherwise, or None.
        steps: Length.
        operator_steps: Steps that the operator commanded.
        takeovers: Times at which the operator took control from the policy.
        total_reward: Undiscounted return.
        cycle_time: Length [s].
        force_peak: Largest filtered contact force [N].
        metrics: The task's own measures after the last step, e.g. the lateral error of a peg.
        overruns: Control deadlines missed by more than a period.
        undecided: Whether its success is unknown until a label arrives.
        cut: Why it was cut without a judgement, e.g. by a hold, or None.
    """

    success: bool
    failure: str | None
    steps: int
    operator_steps: int
    takeovers: int
    total_reward: float
    cycle_time: float
    force_peak: float
    metrics: Mapping[str, float]
    overruns: int
    undecided: bool = False
    cut: str | None = None

    @property
    def assisted(self) -> bool:
        """Whether the operator was in control at any step."""
        return self.operator_steps > 0


class Observer(Protocol):
    """A receiver of episodes as they are played; recording, replay and metrics are observers."""

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Receive the first observation of an episode."""
        ...

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Receive a step, and the observation that it led to."""
        ...

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """Receive a finished episode."""
        ...
