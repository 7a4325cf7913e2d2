"""Rewards by labels beside a training: a labeller's process gets the episodes, the learner gets its labels."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robot_rl.config.reward import RewardConfig
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.env.environment import Environment, judges_of, waits_between_steps
from robot_rl.errors import ConfigError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.labels.hack_monitor import HackWatch
from robot_rl.reward.labels.labeller import Labeller, read_labeller
from robot_rl.reward.labels.process_link import LabellerLink, Result
from robot_rl.reward.labels.process_messages import Labelled, Order, RoundDone
from robot_rl.reward.late.observer import LateRewards
from robot_rl.reward.late.reward_source import LabelReward
from robot_rl.reward.preference_loop.training_rewards import rewards_by_pairs
from robot_rl.run.training_record import TrainingRecord

logger = logging.getLogger(__name__)

TrainingRewards = LateRewards[Any]
"""What brings rewards to a training after its episodes."""


class LabelRewards(LateRewards[TrainingRecord]):
    """Connects a training to its labeller; see `LateRewards`."""

    section = "labels"

    def __init__(self, labeller: Labeller, link: LabellerLink, judge: LabelReward, *, waits: bool) -> None:
        super().__init__(labeller, link, judge, waits=waits)
        self._watch = HackWatch(labeller.calibration)
        self._labelled: set[str] = set()

    def _receive(self, message: Result, env_steps: int) -> None:
        if isinstance(message, RoundDone):
            self._watch.query_s += message.seconds
            self._report("episodes are left without a label and queried again", message.why)
        elif isinstance(message, Labelled) and message.episode_id not in self._labelled:
            row = next((row for row in self._store.summaries() if row.episode_id == message.episode_id), None)
            if row is not None:
                self._labelled.add(message.episode_id)
                self._settled.add(message.episode_id)
                self._apply(message, row, env_steps)

    def _apply(self, label: Labelled, row: EpisodeSummary, env_steps: int) -> None:
        answer = Answer(Status(label.status), label.values, cost=label.cost)
        success = self._verdicts[row.episode_id] = self._watch.success(answer)
        if row.success is None and success is not None:
            self._learner.label_episode(row.episode_id, success, label.since)
        alarm = self._watch.add(row, answer, label.lag, label.queried)
        if label.lag is not None:  # otherwise the record has it already
            self._record.label(env_steps, row, label, success, self._watch.monitor.alarms)
        if alarm is not None:
            self._record.log(f"ALARM after {row.episode_id}: {alarm}")

    def summary(self) -> dict[str, Any]:
        """Return which labeller it was, how far it could be trusted, and how its labels compare with the truth."""
        calibrated = self._labeller.calibration is not None
        return {**super().summary(), "calibrated": calibrated, **self._watch.summary()}


class EvaluationLabels(LabelRewards):
    """Labels of the episodes of an evaluation: nothing is learned from them, nor recorded beside the training."""

    def _apply(self, label: Labelled, row: EpisodeSummary, env_steps: int) -> None:
        del env_steps
        self._verdicts[row.episode_id] = self._watch.success(Answer(Status(label.status), label.values))


@contextlib.contextmanager
def open_label_rewards(
    reward: RewardConfig, env: Environment, made: type[LabelRewards] = LabelRewards
) -> Iterator[TrainingRewards | None]:
    """Start the labeller beside a training; None if labels do not reward its episodes.

    Args:
        reward: The `reward` section of the configuration.
        env: The environment; a `LabelReward` among its outcome filters shows that labels are needed.
        made: Made of labels of success; it decides what they are for.

    Raises:
        UncertifiedError: if the labels are unfit or not shown to be fit, and the configuration does not allow that.
        ConfigError: if the labeller cannot be used, or is for another task.
        DataError: if there are no labels of that name.
    """
    judge = next((one for one in judges_of(env) if isinstance(one, LabelReward)), None)
    if judge is None:
        yield None
        return
    kind = "preference" if reward.kind == "preferences" else "success"
    outcomes = Path(reward.truth) if reward.truth else None
    labeller = read_labeller(
        Path(reward.path), reward.labels, allowed=reward.allow_uncalibrated, kind=kind, outcomes=outcomes
    )
    spec = env.environment_spec
    if labeller.task != spec.instruction and not labeller.config.task:
        raise ConfigError(
            f"reward.path={reward.path}: its labels are about {labeller.task!r}, the task {spec.name} is "
            f"{spec.instruction!r}"
        )
    if not labeller.gate.passed:
        logger.warning("rewards by labels, %s: what is learned may be how to deceive the labeller", labeller.gate)
    waits = waits_between_steps(env)
    if reward.kind == "preferences":
        with rewards_by_pairs(labeller, reward, judge, logger.warning, waits=waits) as rewards:
            yield rewards
        return
    order = Order(
        labeller.name, labeller.within(reward.budget), labeller.task, labeller.identity, labeller.calibration,
        reward.find_onset,
    )  # fmt: skip
    with LabellerLink(order, logger.warning) as link:
        yield made(labeller, link, judge, waits=waits)
