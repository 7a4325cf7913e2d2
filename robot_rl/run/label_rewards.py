"""Rewards by labels beside a training: a labeller's process gets the episodes, the learner gets its labels."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from robot_rl.config.components import RewardConfig
from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.env.environment import Environment, judges_of, waits_between_steps
from robot_rl.errors import ConfigError
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.labels.hack_monitor import HackWatch
from robot_rl.reward.labels.labeller import Labeller, read_labeller
from robot_rl.reward.labels.process_link import LabellerLink, wait_until
from robot_rl.reward.labels.process_messages import Labelled, Order, RoundDone
from robot_rl.reward.labels.reward_source import LabelReward
from robot_rl.reward.preference_loop.training_rewards import PreferenceRewards, rewards_by_pairs
from robot_rl.run.training_record import TrainingRecord

logger = logging.getLogger(__name__)


class LabelRewards:
    """Connects a training to its labeller; an observer of the online episodes.

    Args:
        labeller: The labeller.
        link: Link to its process.
        judge: The outcome filter of the environment that leaves the success of an episode open.
        waits: Wait for each label between episodes, because time stands still meanwhile and the run is repeatable.
            Otherwise labels are used when they arrive.
    """

    section = "labels"
    """Name of its section of the summary."""

    def __init__(self, labeller: Labeller, link: LabellerLink, judge: LabelReward, *, waits: bool) -> None:
        self._labeller, self._link, self._judge, self._waits = labeller, link, judge, waits
        self._watch = HackWatch(labeller.calibration)
        self._labelled: set[str] = set()
        self._unlabelled: set[str] = set()  # queried in vain
        self._newest = ""
        self._reason = ""  # why episodes were last left without a label

    def begin(self, store: EpisodeStore, learner: LearnerPort, record: TrainingRecord) -> None:
        """Label the online episodes of this store for this learner from now on."""
        self._store, self._learner, self._record = store, learner, record
        self._link.notify = record.log
        self._link.begin(store.path)

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Leave the success of the online episode that starts to the labeller."""
        del episode_id, observation
        self._judge.withhold()

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Do nothing: labels are for whole episodes."""

    def on_end(self, episode: Episode, result: object) -> None:
        """Hand the recorded episode to the labeller."""
        del result
        self._newest = episode.episode_id
        self._link.on_recorded()

    def deliver(self, env_steps: int) -> None:
        """Send the labels that have arrived since the last call to the learner; never wait."""
        messages = self._link.collect()
        if not messages:
            return
        rows = {row.episode_id: row for row in self._store.summaries()}
        for message in messages:
            if isinstance(message, RoundDone):
                self._unlabelled |= set(message.left)
                self._watch.query_s += message.seconds
                if message.why and message.why != self._reason:
                    self._record.log(f"episodes are left without a label and queried again: {message.why}")
                self._reason = message.why
            elif (
                isinstance(message, Labelled)
                and message.episode_id in rows
                and message.episode_id not in self._labelled
            ):
                self._labelled.add(message.episode_id)
                self._apply(message, rows[message.episode_id], env_steps)

    def wait(self, env_steps: int, stop: Callable[[], bool]) -> None:
        """Wait between episodes for the newest one's label, where time stands still meanwhile."""

        def arrived() -> bool:
            self.deliver(env_steps)
            return self._newest in self._labelled | self._unlabelled or bool(self._link.ended) or stop()

        if self._waits:
            wait_until(arrived)

    def _apply(self, label: Labelled, row: EpisodeSummary, env_steps: int) -> None:
        answer = Answer(Status(label.status), label.values, cost=label.cost)
        success = self._watch.success(answer)
        if row.success is None and success is not None:
            self._learner.label_episode(row.episode_id, success, label.since)
        alarm = self._watch.add(row, answer, label.lag, label.queried)
        if label.lag is not None:  # otherwise the record has it already
            self._record.label(env_steps, row, label, success, self._watch.monitor.alarms)
        if alarm is not None:
            self._record.log(f"ALARM after {row.episode_id}: {alarm}")

    def summary(self) -> dict[str, Any]:
        """Return which labeller it was, how far it could be trusted, and how its labels compare with the truth."""
        labeller = self._labeller
        return {
            "labels": labeller.name,
            "model": labeller.identity["model"],
            "calibrated": labeller.calibration is not None,
            "certified": labeller.gate.passed,
            "fitness": labeller.gate.fitness,
            "reasons": list(labeller.gate.reasons),
            **self._watch.summary(),
            "starts": self._link.starts,
            "ended": self._link.ended,
        }


LateRewards = LabelRewards | PreferenceRewards
"""What brings rewards to a training after the episodes."""


@contextlib.contextmanager
def open_label_rewards(reward: RewardConfig, env: Environment) -> Iterator[LateRewards | None]:
    """Start the labeller beside a training; None if labels do not reward its episodes.

    Args:
        reward: The `reward` section of the configuration.
        env: The environment; a `LabelReward` among its outcome filters shows that labels are needed.

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
        yield LabelRewards(labeller, link, judge, waits=waits)
