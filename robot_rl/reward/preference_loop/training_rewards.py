"""Rewards learned from pairs beside a training: a process queries and learns, the learner's memory gets the rewards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from robot_rl.config.reward import RewardConfig
from robot_rl.reward.labels.labeller import Labeller
from robot_rl.reward.labels.process_link import LabellerLink, Result
from robot_rl.reward.labels.process_messages import Order, SessionDone, StepsRewarded
from robot_rl.reward.late.observer import LateRewards, Record
from robot_rl.reward.late.reward_source import LabelReward
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


class SessionRecord(Record, Protocol):
    """The record of a run, as far as sessions go into it."""

    def session(self, env_steps: int, figures: Mapping[str, Any]) -> None:
        """Record a session."""
        ...


class PreferenceRewards(LateRewards[SessionRecord]):
    """Connects a training to the process of preferences; see `LateRewards`."""

    section = "preferences"

    def __init__(self, labeller: Labeller, link: LabellerLink, judge: LabelReward, *, waits: bool) -> None:
        super().__init__(labeller, link, judge, waits=waits)
        self._ends: dict[str, float] = {}  # closeness at the end of each rewarded episode
        self._session: SessionDone | None = None
        self._queried, self._cost = 0, 0.0

    def _receive(self, message: Result, env_steps: int) -> None:
        if isinstance(message, StepsRewarded):
            self._learner.reward_episode(message.episode_id, message.closeness)
            self._ends[message.episode_id] = float(message.closeness[-1])
            self._settled.add(message.episode_id)
        elif isinstance(message, SessionDone):
            self._session = message
            self._queried += message.queried
            self._cost += message.cost
            self._record.session(env_steps, asdict(message))
            self._report("pairs", message.stopped)

    def summary(self) -> dict[str, Any]:
        """Return who answered, what was learned, and how well it separates episodes of known outcome (`auc`)."""
        session = self._session
        known = {row.episode_id: known_success(row) for row in self._store.summaries() if not row.facts.demonstration}
        judged = [
            (truth, self._ends[name]) for name, truth in known.items() if truth is not None and name in self._ends
        ]
        truth, ends = np.array([t for t, _ in judged], bool), np.array([end for _, end in judged])
        return {
            **super().summary(),
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
            "ended": self._link.ended or (session.stopped if session else ""),
        }
