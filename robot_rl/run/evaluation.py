"""Evaluation of a policy on held-out resets, without an operator: success rate with its interval, times, forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from robot_rl.config.components import TrainConfig
from robot_rl.data.sparse_reward import IS
from robot_rl.env.environment import Environment, disable_interventions
from robot_rl.env.episode_observer import EpisodeResult, Observer
from robot_rl.env.supervision import EVALUATING
from robot_rl.errors import ConfigError, RobotLostError
from robot_rl.learn.actor import Proposer, Rollout
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.perception import Perception
from robot_rl.reward.stages.stage_judge import REACHED
from robot_rl.run.deployment import Deployment
from robot_rl.run.episode_retry import EpisodeRetry
from robot_rl.seeding import Purpose, episode_seed
from robot_rl.statistics import bootstrap_interval, mean, wilson_interval
from robot_rl.system.progress import Progress

TITLE = "On held-out resets, without help"
"""What an operator reads of an evaluation."""


def steps_between(rate: float, period: float) -> int:
    """Return the control steps from one decision to the next, of so many decisions in a second.

    Args:
        rate: Of decisions [Hz].
        period: Of control [s].

    Raises:
        ConfigError: if it is not a whole number of them.
    """
    steps = 1.0 / (rate * period)
    if (whole := round(steps)) < 1 or abs(steps - whole) > 0.01 * whole:
        valid = ", ".join(f"{1.0 / (period * count):.3g}" for count in range(1, 6))
        raise ConfigError(f"{rate:g} decisions a second, with a control period of {period:g} s; valid: {valid}, ... Hz")
    return whole


def frequency_average(by_rate: Mapping[float, Evaluation]) -> dict[str, Any]:
    """Return how a policy does at several rates of decisions, and its mean over them (Patil 2024, Sequence RL).

    Args:
        by_rate: Evaluations on the same resets, by the decisions in a second [Hz].
    """
    kept = ("success_rate", "success_ci95", "return_mean", "cycle_time_s")
    rows = [{"rate_hz": rate} | {key: one.summary()[key] for key in kept} for rate, one in by_rate.items()]
    can_succeed = all(one.can_succeed for one in by_rate.values())
    return {
        "by_rate": rows,
        "success_rate": mean(row["success_rate"] for row in rows) if can_succeed else None,
        "return_mean": mean(row["return_mean"] for row in rows),
    }


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
                if not name.startswith((IS, REACHED))
            },
            "failures": failures,
            **({"stages": stages} if (stages := self._stages()) else {}),
        }

    def _stages(self) -> dict[str, float]:
        """Return in which share of the episodes each stage was reached; empty without stages."""
        names = [name for name in self.results[0].metrics if name.startswith(REACHED)]
        return {name.removeprefix(REACHED): mean(r.metrics.get(name, 0.0) for r in self.results) for name in names}

    def rows(self) -> list[dict[str, Any]]:
        """Return the episodes as plain dicts."""
        return [asdict(result) for result in self.results]


class HeldOut:
    """Held-out episodes of the policy as it is deployed, one after the other; one that is cut is played again.

    Args:
        rollout: Environment and policy; interventions are off in it.
        seed: Which resets; training never sees them, whatever its seed.
        purpose: Whether this is the final evaluation or a point of the learning curve; their resets differ.
        retry: Retries of episodes in which the robot is lost; None raises the error.
        judged: Returns a result as who judges it later has it; None: it is known at the end of the episode.

    Attributes:
        results: Of the episodes so far.
    """

    def __init__(
        self,
        rollout: Rollout,
        seed: int,
        purpose: Purpose = Purpose.EVALUATION,
        retry: EpisodeRetry | None = None,
        judged: Callable[[EpisodeResult], EpisodeResult] | None = None,
    ) -> None:
        self._rollout, self._seed, self._purpose, self._retry = rollout, seed, purpose, retry or EpisodeRetry()
        self._judged = judged
        self.results: list[EpisodeResult] = []

    def play(self) -> EpisodeResult | None:
        """Play the next episode; return its result, or None if it does not count and has to be played again."""
        number = len(self.results)
        resets = episode_seed(self._purpose, self._seed, number)
        play = partial(self._rollout.play, resets, f"evaluation-{number:04d}", deterministic=True)
        if (result := self._retry.attempt(play)) is None:
            return None
        if self._judged is not None:
            result = self._judged(result)
        if result.cut is not None:  # nobody has judged it
            self._retry.cut(result.cut)
            return None
        self.results.append(result)
        return result

    @property
    def evaluation(self) -> Evaluation:
        """The results so far."""
        return Evaluation(tuple(self.results), self._seed, self._rollout.environment_spec.success)


def evaluate(
    rollout: Rollout,
    *,
    episodes: int,
    seed: int,
    purpose: Purpose = Purpose.EVALUATION,
    on_episode: Callable[[EpisodeResult], None] | None = None,
    retry: EpisodeRetry | None = None,
    may_start: Callable[[], bool] = lambda: True,
    stop: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """Play held-out episodes with the policy as it is deployed, without an operator; one that is cut is played again.

    Args:
        rollout: Environment and policy; interventions are off in it.
        episodes: How many.
        seed: Which resets; training never sees them, whatever its seed.
        purpose: Whether this is the final evaluation or a point of the learning curve; their resets differ.
        on_episode: Called after each.
        retry: Retries of episodes in which the robot is lost; None raises the error.
        may_start: Called before each until it returns True; waits a moment while somebody holds the arm.
        stop: Called before each; True ends it with those that were played.
    """
    held_out = HeldOut(rollout, seed, purpose, retry)
    while len(held_out.results) < episodes and not stop():
        if not may_start():
            continue
        try:
            result = held_out.play()
        except RobotLostError:  # after a stop nobody waits for the robot any more
            if not stop():
                raise
            break
        if result is not None and on_episode is not None:
            on_episode(result)
    return held_out.evaluation


def evaluate_policy(
    config: TrainConfig,
    env: Environment,
    policy: Policy | None,
    perception: Perception | None,
    deployment: Deployment,
    observers: Sequence[Observer] = (),
    base: Proposer | None = None,
    every: int | None = None,
) -> Evaluation:
    """Evaluate a policy as configured, with a progress display; an operator sees it, too.

    Args:
        config: The run's configuration.
        env: Where the policy acts; interventions are switched off in it.
        policy: The policy; None: the base alone acts.
        perception: Encodes its observations; None without a policy.
        deployment: Where it takes place, and the operator who judges, if one does.
        observers: Observers of every step.
        base: Proposes the actions that the policy corrects.
        every: Steps from one decision of the policy to the next; None: its own.
    """
    disable_interventions(env)
    assistance = deployment.assistance
    if assistance is not None:
        observers = (*observers, *assistance.observers)
        assistance.phase(EVALUATING, f"{TITLE}.")
    rollout = Rollout(env, policy, perception, config.replay.history, observers, base=base, every=every)
    outcomes: list[EpisodeResult] = []
    can_succeed, settings = env.environment_spec.success, config.evaluation
    with Progress(settings.episodes, "evaluate", unit="episodes") as progress:

        def show(result: EpisodeResult) -> None:
            outcomes.append(result)
            success = mean(r.success for r in outcomes) if can_succeed else None
            return_mean = None if can_succeed else mean(r.total_reward for r in outcomes)
            progress.update(len(outcomes), success=success, return_mean=return_mean)
            if assistance is not None:
                so_far = f"return {return_mean:.3g}" if success is None else f"{success:.0%} successful"
                text = f"{TITLE}: {len(outcomes)} of {settings.episodes} episodes, {so_far}."
                assistance.phase(EVALUATING, text)

        return evaluate(
            rollout,
            episodes=settings.episodes,
            seed=settings.seed,
            on_episode=show,
            retry=deployment.retry(progress.log),
            may_start=deployment.may_start,
        )
