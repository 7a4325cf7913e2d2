"""Rewards that arrive after their episode: an observer of a training that hands its episodes to a process beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, Protocol, TypeVar

from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.episode_observer import EpisodeResult
from robot_rl.learn.learner_port import LearnerPort
from robot_rl.reward.labels.labeller import Labeller
from robot_rl.reward.labels.process_link import LabellerLink, Result, wait_until
from robot_rl.reward.labels.process_messages import RoundDone
from robot_rl.reward.late.reward_source import TO_BE_LABELLED, LabelReward

LONGEST_WAIT = 600.0
"""Longest time for which the next turn waits for a label, e.g. while a server is away [s]."""


class Record(Protocol):
    """The record of a run, as far as every kind of late reward needs it."""

    def log(self, text: str) -> None:
        """Print a line."""
        ...


R = TypeVar("R", bound=Record)


class LateRewards(Generic[R]):
    """Connects a training to the process that rewards its online episodes; an observer of these episodes.

    A subclass handles the messages that have rewards.

    Args:
        labeller: Who answers.
        link: Link to the process.
        judge: The outcome filter of the environment that leaves the success of an episode open.
        waits: Wait for the rewards of each episode, because time stands still meanwhile and the run is repeatable.
            Otherwise rewards are used when they arrive.
    """

    section = ""
    """Name of its section of the summary."""

    def __init__(self, labeller: Labeller, link: LabellerLink, judge: LabelReward, *, waits: bool) -> None:
        self._labeller, self._link, self._judge, self._waits = labeller, link, judge, waits
        self._settled: set[str] = set()  # episodes that have their rewards, or were queried in vain
        self._newest, self._reason = "", ""
        self._verdicts: dict[str, bool | None] = {}  # success of labelled episodes; None: the label leaves it open

    def begin(self, store: EpisodeStore, learner: LearnerPort, record: R) -> None:
        """Reward the online episodes of this store for this learner from now on."""
        self._store, self._learner, self._record = store, learner, record
        self._link.notify = record.log
        self._link.begin(store.path)

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """Leave the success of the online episode that starts open."""
        del episode_id, observation
        self._judge.withhold()

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """Do nothing: rewards are given to whole episodes."""

    def on_end(self, episode: Episode, result: object) -> None:
        """Hand the recorded episode to the process."""
        del result
        self._newest = episode.episode_id
        self._link.on_recorded()

    def deliver(self, env_steps: int) -> None:
        """Send the rewards that have arrived since the last call to the learner; never wait."""
        for message in self._link.collect():
            if isinstance(message, RoundDone):
                self._settled |= set(message.left)
            self._receive(message, env_steps)

    def wait(self, env_steps: int, stop: Callable[[], bool]) -> None:
        """Wait between episodes for the newest one's rewards, where time stands still meanwhile."""
        if self._waits:
            self._await_newest(env_steps, stop)

    @property
    def ended(self) -> str:
        """Why no more rewards will come; empty while they may."""
        return self._link.ended

    def judged(self, result: EpisodeResult, env_steps: int, stop: Callable[[], bool]) -> EpisodeResult:
        """Wait for the label of the newest episode, and return its result with the success that the label shows.

        Without a label, or with one that leaves it open, it was no success. What is decided already stays as it is: a
        success that a person told at once, a failure, and what was cut for another reason.
        """
        if not result.undecided or result.failure is not None or result.cut not in (None, TO_BE_LABELLED):
            return result
        end = time.monotonic() + LONGEST_WAIT
        self._await_newest(env_steps, lambda: stop() or time.monotonic() > end)
        return replace(result, success=bool(self._verdicts.get(self._newest)), cut=None)

    def _await_newest(self, env_steps: int, stop: Callable[[], bool]) -> None:
        def arrived() -> bool:
            self.deliver(env_steps)
            return self._newest in self._settled or bool(self._link.ended) or stop()

        wait_until(arrived)

    def summary(self) -> dict[str, Any]:
        """Return who answered, and how far that could be trusted."""
        labeller = self._labeller
        return {
            "labels": labeller.name,
            "model": labeller.identity["model"],
            "certified": labeller.gate.passed,
            "fitness": labeller.gate.fitness,
            "reasons": list(labeller.gate.reasons),
            "starts": self._link.starts,
            "ended": self._link.ended,
        }

    def _receive(self, message: Result, env_steps: int) -> None:
        """Handle a message of the process."""
        raise NotImplementedError

    def _report(self, what: str, why: str) -> None:
        """Print why rewards are missing, when the reason changes."""
        if why and why != self._reason:
            self._record.log(f"{what}: {why}")
        self._reason = why
