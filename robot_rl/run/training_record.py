"""The record of a training: `metrics.jsonl`, the progress line, and the regularity of control."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.reward.labels.process_messages import Labelled
from robot_rl.reward.validation.ground_truth import known_success
from robot_rl.run.control_timing import ControlTiming
from robot_rl.run.directory.human_effort import OPERATOR_LOG, HumanEffort
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.statistics import mean
from robot_rl.system.progress import Display

MAX_CLAMPED = 0.05
"""Largest share of clamped targets that needs no warning."""
ROLLING = 20
"""Episodes in the rolling figures of the progress display."""


class TrainingRecord:
    """The record of one training.

    Args:
        spec: Of the task.
        metrics: Writes `metrics.jsonl`.
        progress: The progress display.

    Attributes:
        timing: Regularity of control in the episodes since the run was started or resumed; an observer.
        effort: What the operator did in the whole run; an observer.
    """

    def __init__(self, spec: EnvironmentSpec, metrics: MetricsWriter, progress: Display) -> None:
        self.metrics, self.progress = metrics, progress
        self.timing = ControlTiming(spec.control_period)
        self.effort = HumanEffort(spec.control_period, metrics.path.parent / OPERATOR_LOG)
        self._can_succeed = spec.success
        self._q_bound = None if spec.return_range is None else spec.return_range[1]
        self._clamped = 0.0  # share in the last record; in the first one critics are still arbitrary
        self._warned_of_clamping = self._warned_of_disk = False
        self._started, self._earlier = time.monotonic(), 0.0
        self._recent: deque[EpisodeResult] = deque(maxlen=ROLLING)
        self._marks = (self._started, 0, 0)
        self._calls = 0

    @property
    def wall_time(self) -> float:
        """Time spent, earlier parts of a resumed run included [s]."""
        return self._earlier + time.monotonic() - self._started

    def resume(self, env_steps: int, updates: int, wall_time: float) -> None:
        """Continue the record of an earlier part of the run, which took `wall_time` [s]."""
        self._earlier = wall_time
        self._marks = (self._started, env_steps, updates)

    def log(self, text: str) -> None:
        """Print a line beside the progress display."""
        self.progress.log(text)

    def demonstrations(self, facts: Mapping[str, Any]) -> None:
        """Record how the demonstrations went; `facts` as of `demonstration_facts`."""
        self.metrics.write("demonstrations", 0, facts)
        total, success, seconds = facts["episodes"], facts["success_rate"], facts["cycle_time_s"] or 0
        self.log(f"{total} demonstrations, {success:.0%} successful, {seconds:.1f} s each")

    def offline(self, done: int, total: int, logs: Mapping[str, float]) -> None:
        """Record `done` of `total` updates from demonstrations alone."""
        self.metrics.write("offline", done - total, {"offline_updates": done, **logs})
        self.progress.update(0, offline=f"{done}/{total}")

    def base(self, done: int, total: int, logs: Mapping[str, float]) -> None:
        """Record `done` of `total` updates of a base that is trained."""
        self.metrics.write("base", 0, {"base_updates": done, **logs})
        self.progress.update(0, base=f"{done}/{total}")

    def update(self, env_steps: int, learner: LearnerPort, logs: Mapping[str, float]) -> None:
        """Record the updates of the learner since the last call."""
        now, (then, steps, updates) = time.monotonic(), self._marks
        seconds = max(now - then, 1e-9)
        self._marks = (now, env_steps, learner.updates)
        rates = {
            "steps_per_s": (env_steps - steps) / seconds,
            "updates_per_s": (learner.updates - updates) / seconds,
        }
        self._warn_of_clamping(logs.get("clamped", 0.0))
        counts = {"updates": learner.updates, "utd": learner.update_to_data}
        self.metrics.write("update", env_steps, {**counts, **rates, **logs})
        self.progress.update(
            env_steps,
            updates_per_s=rates["updates_per_s"],
            q_mean=logs.get("q_mean"),
            q_bound=self._q_bound if "q_mean" in logs else None,
        )

    def _warn_of_clamping(self, share: float) -> None:
        """Log once that many targets of the critics were clamped, in two records: the range of returns may be wrong."""
        before, self._clamped = self._clamped, share
        if min(before, share) > MAX_CLAMPED and not self._warned_of_clamping:
            self._warned_of_clamping = True
            self.log(
                f"{share:.0%} of the critics' targets left the declared range of returns and were clamped; the range "
                "may be wrong: see return_range of the task, or environment.return_range"
            )

    def curve(self, env_steps: int, point: Mapping[str, Any]) -> None:
        """Record a point of the learning curve."""
        self.metrics.write("curve", env_steps, point)
        reached = (
            f"return {point['return_mean']:.4g} on" if not self._can_succeed else f"{point['success_rate']:.0%} of"
        )
        self.log(f"{env_steps} steps: {reached} {point['episodes']} resets without help")

    def label(self, env_steps: int, row: EpisodeSummary, label: Labelled, success: bool | None, alarms: int) -> None:
        """Record a new label of an online episode, and what it means for its success."""
        self.metrics.write(
            "label",
            env_steps,
            {
                "episode_id": row.episode_id,
                "status": label.status,
                "value": label.values[0] if label.values else None,
                "success": success,
                "since": label.since or None,
                "truth": known_success(row),
                "lag_s": label.lag,
                "queried": label.queried,
                "cost": label.cost,
                "alarms": alarms,
            },
        )

    def session(self, env_steps: int, figures: Mapping[str, Any]) -> None:
        """Record a session of queries about pairs, and the fit of the reward; one is recorded again after resuming."""
        self.metrics.write("preference_session", env_steps, figures)

    def call(self) -> None:
        """Count a call of the operator in the running episode."""
        self._calls += 1

    def episode(self, env_steps: int, number: int, result: EpisodeResult, queue_peak: int, not_journalled: int) -> None:
        """Record an online episode.

        Args:
            env_steps: Online steps so far, with those of the episode.
            number: Of the episode, from 0.
            result: The episode in numbers.
            queue_peak: Most steps that waited for the disk at a time.
            not_journalled: Steps that reached the disk only with the finished episode.
        """
        self._recent.append(result)
        if not_journalled and not self._warned_of_disk:
            self._warned_of_disk = True
            self.log(
                f"the disk did not keep up: {not_journalled} of {result.steps} steps reached it only with the "
                "finished episode; record to a faster disk"
            )
        self.metrics.write(
            "episode",
            env_steps,
            {
                "episode": number,
                "return": result.total_reward,
                "success": result.success if self._can_succeed and not result.undecided else None,
                "assisted": result.assisted,
                "steps": result.steps,
                "cycle_time_s": result.cycle_time,
                "intervention_steps": result.operator_steps,
                "intervention_rate": result.operator_steps / result.steps,
                "takeovers": result.takeovers,
                "calls": self._calls,
                "person": self.effort.figures,
                "force_peak_n": result.force_peak,
                **result.metrics,
                "failure": result.failure,
                "journal_queue_peak": queue_peak,
                "not_journalled": not_journalled,
                "wall_s": self.wall_time,
            },
        )
        self._calls = 0
        steps = sum(r.steps for r in self._recent)
        known = self._can_succeed and not result.undecided
        self.progress.update(
            env_steps,
            success=mean(r.success and not r.assisted for r in self._recent) if known else None,
            return_mean=None if self._can_succeed else mean(r.total_reward for r in self._recent),
            intervention_rate=sum(r.operator_steps for r in self._recent) / steps,
        )
