"""Rewards by labels beside a training: episodes go to the labeller, what it says goes to the learner.

It knows training, the labeller's process and how labels are judged; control and learning know nothing of it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from robot_rl.clock import stands_still
from robot_rl.config.components import TrainConfig
from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.robot_env import RobotEnv
from robot_rl.errors import ConfigError
from robot_rl.learn.actor import EpisodeResult
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.labels.hack_monitor import HackWatch
from robot_rl.reward.labels.labeller import Labeller, read_labeller
from robot_rl.reward.labels.process_link import LabellerLink, wait_until
from robot_rl.reward.labels.process_messages import Labelled, Order, RoundDone
from robot_rl.reward.labels.reward_source import LabelReward
from robot_rl.reward.validation.ground_truth import known_success
from robot_rl.run.directory.metrics import MetricsWriter
from robot_rl.system.progress import Progress


class LabelledTraining:
    """What is between a training and its labeller; an observer of the online episodes.

    Args:
        labeller: Who labels.
        link: To its process.
        judge: Of the environment.
        waits: Whether the training waits for each label between episodes, because time stands still meanwhile and a run
            shall be repeatable. Otherwise labels come when they come.
    """

    def __init__(self, labeller: Labeller, link: LabellerLink, judge: LabelReward, *, waits: bool) -> None:
        self._labeller, self._link, self._judge, self._waits = labeller, link, judge, waits
        self._watch = HackWatch(labeller.calibration)
        self._told: set[str] = set()  # episodes whose label has come
        self._passed: set[str] = set()  # episodes that were asked about in vain
        self._newest = ""
        self._said = ""

    def begin(self, store: EpisodeStore, learner: LearnerPort, metrics: MetricsWriter, progress: Progress) -> None:
        """Labels the online episodes of this store for this learner from now on."""
        self._store, self._learner, self._metrics, self._progress = store, learner, metrics, progress
        self._link.notify = progress.log
        self._link.begin(store.path)

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """An online episode starts; its success is for the labeller to say."""
        del episode_id, observation
        self._judge.withhold()

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Labels are of whole episodes."""

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """The episode is recorded, and can be looked at."""
        del result
        self._newest = episode.episode_id
        self._link.on_recorded()

    def take(self, env_steps: int) -> None:
        """Hands on what the labeller has said since the last call; never waits."""
        words = self._link.collect()
        if not words:
            return
        rows = {row.episode_id: row for row in self._store.summaries()}
        for word in words:
            if isinstance(word, RoundDone):
                self._passed |= set(word.left)
                self._watch.query_s += word.seconds
                if word.why and word.why != self._said:
                    self._progress.log(f"episodes are left without a label, and asked about again: {word.why}")
                self._said = word.why
            elif word.episode_id in rows and word.episode_id not in self._told:
                self._told.add(word.episode_id)
                self._judge_by(word, rows[word.episode_id], env_steps)

    def wait(self, env_steps: int, stop: Callable[[], bool]) -> None:
        """Between episodes: waits for the newest one's label where time stands still meanwhile, or just takes."""

        def come() -> bool:
            self.take(env_steps)
            return self._newest in self._told | self._passed or bool(self._link.ended) or stop()

        if self._waits:
            wait_until(come)

    def _judge_by(self, word: Labelled, row: Any, env_steps: int) -> None:
        answer = Answer(Status(word.status), word.values, cost=word.cost)
        success, truth = self._watch.success(answer), known_success(row)
        if row.success is None and success is not None:
            self._learner.label_episode(row.episode_id, success, word.since)
        alarm = self._watch.add(row, answer, word.lag, word.queried)
        if word.lag is not None:  # else it is in the record already
            self._metrics.write(
                "label",
                env_steps,
                {
                    "episode_id": row.episode_id,
                    "status": word.status,
                    "value": word.values[0] if word.values else None,
                    "success": success,
                    "since": word.since or None,
                    "truth": truth,
                    "lag_s": word.lag,
                    "queried": word.queried,
                    "cost": word.cost,
                    "alarms": self._watch.monitor.alarms,
                },
            )
        if alarm is not None:
            self._progress.log(f"ALARM after {row.episode_id}: {alarm}")

    def summary(self) -> dict[str, Any]:
        """Who labelled, how far they could be trusted, and what came of it."""
        labeller = self._labeller
        return {
            "labels": labeller.name,
            "model": labeller.identity["model"],
            "calibrated": labeller.calibration is not None,
            "certified": labeller.certified,
            "reasons": list(labeller.reasons),
            **self._watch.summary(),
            "starts": self._link.starts,
            "ended": self._link.ended,
        }


@contextlib.contextmanager
def labelled(config: TrainConfig, env: RobotEnv) -> Iterator[LabelledTraining | None]:
    """The labeller beside a training, ready; None if episodes are not judged by labels.

    Raises:
        UncertifiedError: if its labels did not pass the gate, and the configuration does not take the risk.
        ConfigError: if it cannot be used, or is for another task.
        DataError: if there are no labels of that name.
    """
    judge = next((one for one in env.judges if isinstance(one, LabelReward)), None)
    if judge is None:
        yield None
        return
    reward = config.reward
    labeller = read_labeller(Path(reward.path), reward.labels, allowed=reward.allow_uncalibrated)
    if labeller.task != env.spec_task.instruction and not labeller.config.task:
        raise ConfigError(
            f"reward.path={reward.path}: its labels are about {labeller.task!r}, the task {config.task} is "
            f"{env.spec_task.instruction!r}"
        )

    def say(text: str) -> None:
        print(f"robot-rl: {text}", file=sys.stderr, flush=True)

    if not labeller.certified:
        say("rewards by labels WITHOUT A PASSED GATE: what is learned may be how to deceive the labeller")
    order = Order(
        labeller.name, labeller.within(reward.budget), labeller.task, labeller.identity, labeller.calibration,
        reward.find_onset,
    )  # fmt: skip
    waits = stands_still(env.clock)
    with LabellerLink(order, say) as link:
        yield LabelledTraining(labeller, link, judge, waits=waits)
