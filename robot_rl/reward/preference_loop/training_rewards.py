"""Rewards learned from pairs beside a training: a process queries and learns, the learner's memory gets the rewards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from robot_rl.config.components import RewardConfig
from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.data.store.store import EpisodeStore
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.reward.labels.labeller import Labeller
from robot_rl.reward.labels.process_link import LabellerLink, wait_until
from robot_rl.reward.labels.process_messages import Order, RoundDone, SessionDone, StepsRewarded
from robot_rl.reward.labels.reward_source import LabelReward
from robot_rl.reward.validation.figures import roc_auc
from robot_rl.reward.validation.ground_truth import known_success

MODULE = "robot_rl.reward.preference_loop.process"
"""What the process runs."""


@contextlib.contextmanager
def rewards_by_pairs(
    labeller: Labeller, reward: RewardConfig, judge: LabelReward, notify: Callable[[str], object], *, waits: bool
) -> Iterator[PreferenceRewards]:
    """Start the process of preferences beside a training.

    Args:
        labeller: Who answers.
        reward: The `reward` section of the configuration.
        judge: As in `PreferenceRewards`, like `waits`.
        notify: Receives a sentence for the user, from any thread.
        waits: Whether to wait for the rewards of each episode.

    Raises:
        ConfigError: if the labeller cannot be used.
    """
    order = Order(
        labeller.name, labeller.within(reward.budget), labeller.task, labeller.identity, preferences=reward.preferences
    )
    with LabellerLink(order, notify, MODULE) as link:
        yield PreferenceRewards(labeller, link, judge, waits=waits)


class SessionRecord(Protocol):
    """The record of a run, as far as sessions go into it."""

    def log(self, text: str) -> None:
        """Print a line."""
        ...

    def session(self, env_steps: int, figures: Mapping[str, Any]) -> None:
        """Record a session."""
        ...


class PreferenceRewards:
    """Connects a training to the process of preferences; an observer of the online episodes.

    Args:
        labeller: Who answers.
        link: Link to the process.
        judge: The outcome filter of the environment that leaves the success of an episode open.
        waits: Wait for the rewards of each episode, because time stands still meanwhile and the run is repeatable.
            Otherwise rewards are used when they arrive.
    """

    section = "preferences"
    """Name of its section of the summary."""

    def __init__(self, labeller: Labeller, link: LabellerLink, judge: LabelReward, *, waits: bool) -> None:
        self._labeller, self._link, self._judge, self._waits = labeller, link, judge, waits
        self._ends: dict[str, float] = {}  # closeness at the end of each rewarded episode
        self._unrewarded: set[str] = set()
        self._newest, self._reason = "", ""
        self._session: SessionDone | None = None
        self._queried, self._cost = 0, 0.0

    def begin(self, store: EpisodeStore, learner: LearnerPort, record: SessionRecord) -> None:
        """Reward the episodes of this store for this learner from now on."""
        self._store, self._learner, self._record = store, learner, record
        self._link.notify = record.log
        self._link.begin(store.path)

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Leave the success of the online episode that starts open."""
        del episode_id, observation
        self._judge.withhold()

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Do nothing: rewards are learned from whole episodes."""

    def on_end(self, episode: Episode, result: object) -> None:
        """Hand the recorded episode to the process."""
        del result
        self._newest = episode.episode_id
        self._link.on_recorded()

    def deliver(self, env_steps: int) -> None:
        """Send the rewards that have arrived since the last call to the learner; never wait."""
        for message in self._link.collect():
            if isinstance(message, StepsRewarded):
                self._learner.reward_episode(message.episode_id, message.closeness)
                self._ends[message.episode_id] = float(message.closeness[-1])
            elif isinstance(message, SessionDone):
                self._session = message
                self._queried += message.queried
                self._cost += message.cost
                self._record.session(env_steps, asdict(message))
                self._report(message.stopped)
            elif isinstance(message, RoundDone):
                self._unrewarded |= set(message.left)

    def wait(self, env_steps: int, stop: Callable[[], bool]) -> None:
        """Wait between episodes for the newest one's rewards, where time stands still meanwhile."""

        def arrived() -> bool:
            self.deliver(env_steps)
            return self._newest in self._ends.keys() | self._unrewarded or bool(self._link.ended) or stop()

        if self._waits:
            wait_until(arrived)

    def _report(self, why: str) -> None:
        if why and why != self._reason:
            self._record.log(f"pairs: {why}")
        self._reason = why

    def summary(self) -> dict[str, Any]:
        """Return who answered, what was learned, and how well it separates episodes of known outcome (`auc`)."""
        labeller, session = self._labeller, self._session
        known = {row.episode_id: known_success(row) for row in self._store.summaries() if not row.facts.demonstration}
        judged = [
            (truth, self._ends[name]) for name, truth in known.items() if truth is not None and name in self._ends
        ]
        truth, ends = np.array([t for t, _ in judged], bool), np.array([end for _, end in judged])
        return {
            "labels": labeller.name,
            "model": labeller.identity["model"],
            "certified": labeller.gate.passed,
            "fitness": labeller.gate.fitness,
            "reasons": list(labeller.gate.reasons),
            "sessions": session.session if session else 0,
            "pairs": session.pairs if session else 0,
            "skipped": session.skipped if session else 0,
            "flip_rate": session.flip_rate if session else None,
            "accuracy": session.accuracy if session else None,
            "queried": self._queried,
            "cost": self._cost,
            "rewarded": len(self._ends),
            "judged": len(judged),
            "auc": roc_auc(truth, ends) if truth.any() and not truth.all() else None,
            "starts": self._link.starts,
            "ended": self._link.ended or (session.stopped if session else ""),
        }
