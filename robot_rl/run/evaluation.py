"""Evaluation: a policy, left alone, on held-out resets; and what that says with what certainty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from robot_rl.errors import RobotLostError
from robot_rl.learn.actor import EpisodeResult, Rollout
from robot_rl.run.episode_retry import Patience
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.statistics import wilson_interval


@dataclass(frozen=True)
class Evaluation:
    """Results of all episodes, in the order of their seeds.

    Attributes:
        results: One per episode.
        seed: The evaluation's seed, from which the resets follow.
    """

    results: tuple[EpisodeResult, ...]
    seed: int

    def summary(self) -> dict[str, Any]:
        """Success with its 95 % Wilson interval; cycle time, force and the task's metrics; why the rest failed."""
        successes = [result for result in self.results if result.success]
        failures: dict[str, int] = {}
        for result in self.results:
            if not result.success:
                reason = result.failure or "step limit"
                failures[reason] = failures.get(reason, 0) + 1
        return {
            "episodes": len(self.results),
            "evaluation_seed": self.seed,
            "success_rate": len(successes) / len(self.results),
            "success_ci95": list(wilson_interval(len(successes), len(self.results))),
            "cycle_time_s": mean(r.cycle_time for r in successes) if successes else None,
            "return_mean": mean(r.total_reward for r in self.results),
            "force_peak_p95_n": float(np.percentile([r.force_peak for r in self.results], 95)),
            "metrics_at_success": {
                name: {"mean": mean(r.metrics[name] for r in successes), "max": max(r.metrics[name] for r in successes)}
                for name in (successes[0].metrics if successes else ())
            },
            "failures": failures,
        }

    def rows(self) -> list[dict[str, Any]]:
        """The episodes, as plain dicts."""
        return [asdict(result) for result in self.results]


def mean(values: Any) -> float:
    """Mean of an iterable of numbers."""
    return float(np.mean(list(values)))


def evaluate(
    rollout: Rollout,
    *,
    episodes: int,
    seed: int,
    purpose: Purpose = Purpose.EVALUATION,
    on_episode: Callable[[EpisodeResult], None] | None = None,
    patience: Patience | None = None,
    free: Callable[[], bool] = lambda: True,
) -> Evaluation:
    """Plays held-out episodes with the deterministic policy, without an operator.

    Args:
        rollout: Environment and policy; interventions are off in it.
        episodes: How many.
        seed: Which resets; training never sees them, whatever its seed.
        purpose: Whether this is the final evaluation or a point of the learning curve; their resets differ.
        on_episode: Called after each.
        patience: What to do when the robot is lost: the episode is then played again; None raises the error.
        free: Asked before each whether it may begin, until it may; waits a moment while somebody holds the arm.
    """
    patience = patience or Patience()
    results: list[EpisodeResult] = []
    while len(results) < episodes:
        if not free():
            continue
        number = len(results)
        resets = episode_seed(purpose, seed, number)
        try:
            result = rollout.play(resets, f"evaluation-{number:04d}", deterministic=True)
        except RobotLostError as error:
            patience.lost(error)
            continue
        patience.done()
        results.append(result)
        if on_episode is not None:
            on_episode(result)
    return Evaluation(tuple(results), seed)
