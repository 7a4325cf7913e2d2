"""Evaluation of a policy on held-out resets, without an operator: success rate with its interval, times, forces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from robot_rl.errors import RobotLostError
from robot_rl.learn.actor import EpisodeResult, Rollout
from robot_rl.run.episode_retry import EpisodeRetry
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.statistics import bootstrap_interval, wilson_interval


@dataclass(frozen=True)
class Evaluation:
    """Results of all episodes, in the order of their seeds.

    Attributes:
        results: One per episode.
        seed: The evaluation's seed, from which the resets follow.
        can_succeed: Whether an episode can succeed in this environment.
    """

    results: tuple[EpisodeResult, ...]
    seed: int
    can_succeed: bool = True

    def summary(self) -> dict[str, Any]:
        """Return success with its 95 % Wilson interval, cycle time, return, force, the task's metrics, and failures.

        Where no episode can succeed, success is None.
        """
        successes = [result for result in self.results if result.success]
        failures: dict[str, int] = {}
        for result in self.results:
            if not result.success and self.can_succeed:
                reason = result.failure or "step limit"
                failures[reason] = failures.get(reason, 0) + 1
        return {
            "episodes": len(self.results),
            "evaluation_seed": self.seed,
            "success_rate": len(successes) / len(self.results) if self.can_succeed else None,
            "success_ci95": list(wilson_interval(len(successes), len(self.results))) if self.can_succeed else None,
            "cycle_time_s": mean(r.cycle_time for r in successes) if successes else None,
            "return_mean": mean(r.total_reward for r in self.results),
            "return_ci95": list(bootstrap_interval([[r.total_reward for r in self.results]], mean)),
            "force_peak_p95_n": float(np.percentile([r.force_peak for r in self.results], 95)),
            "metrics_at_success": {
                name: {"mean": mean(r.metrics[name] for r in successes), "max": max(r.metrics[name] for r in successes)}
                for name in (successes[0].metrics if successes else ())
            },
            "failures": failures,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the episodes as plain dicts."""
        return [asdict(result) for result in self.results]


def mean(values: Any) -> float:
    """Return the mean of an iterable of numbers."""
    return float(np.mean(list(values)))


def evaluate(
    rollout: Rollout,
    *,
    episodes: int,
    seed: int,
    purpose: Purpose = Purpose.EVALUATION,
    on_episode: Callable[[EpisodeResult], None] | None = None,
    retry: EpisodeRetry | None = None,
    may_start: Callable[[], bool] = lambda: True,
) -> Evaluation:
    """Play held-out episodes with the deterministic policy, without an operator.

    Args:
        rollout: Environment and policy; interventions are off in it.
        episodes: How many.
        seed: Which resets; training never sees them, whatever its seed.
        purpose: Whether this is the final evaluation or a point of the learning curve; their resets differ.
        on_episode: Called after each.
        retry: Retries of episodes in which the robot is lost; None raises the error.
        may_start: Called before each until it returns True; waits a moment while somebody holds the arm.
    """
    retry = retry or EpisodeRetry()
    results: list[EpisodeResult] = []
    while len(results) < episodes:
        if not may_start():
            continue
        number = len(results)
        resets = episode_seed(purpose, seed, number)
        try:
            result = rollout.play(resets, f"evaluation-{number:04d}", deterministic=True)
        except RobotLostError as error:
            retry.lost(error)
            continue
        retry.done()
        results.append(result)
        if on_episode is not None:
            on_episode(result)
    return Evaluation(tuple(results), seed, rollout.environment_spec.success)
