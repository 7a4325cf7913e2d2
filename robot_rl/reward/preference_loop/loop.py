"""The loop of RL-VLM-F (Wang 2024) beside a training: choose pairs, query, refit the reward, relabel what is replayed.

A session is held whenever so many online episodes were recorded. Everything in it follows from the store, the seed and
the answers, so a killed process repeats it without a query.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import numpy as np
from torch import Tensor

from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import BudgetSpentError, ConfigError, ValuelessAnswersError
from robot_rl.reward.answer import Answer
from robot_rl.reward.label_store import LABELS, Label
from robot_rl.reward.labels.annotate import Labelling
from robot_rl.reward.labels.process import Work
from robot_rl.reward.labels.process_messages import RoundDone, SessionDone, StepsRewarded
from robot_rl.reward.labels.units import Units
from robot_rl.reward.labels.valueless import ValuelessStreak
from robot_rl.reward.preference.pairs import Preferences, combine_orders
from robot_rl.reward.preference.rewards import features
from robot_rl.reward.preference_loop.choose_pairs import Choice, choose_pairs
from robot_rl.reward.preference_loop.learned_reward import LearnedReward, lacking
from robot_rl.reward.preference_loop.sessions import Sessions


class PreferenceLoop:
    """Sessions of queries, and the rewards that follow from them.

    Args:
        work: What the labeller's process has; its `labels` were begun for the name of the order.

    Raises:
        ConfigError: if the order is not for preferences.
    """

    def __init__(self, work: Work) -> None:
        if work.order.preferences is None or work.order.config.kind != "preference":
            raise ConfigError("the order is not for preferences")
        self._work, self._settings = work, work.order.preferences
        self._config, self._name = work.order.config, work.order.name
        self._sessions = Sessions(work.store / LABELS / f"{self._name}.sessions.json")
        self._encode = features(self._settings.features, self._config.frames.camera)
        self._moments: dict[tuple[str, str], Tensor] = {}  # by id and fingerprint
        self._streak = ValuelessStreak()
        self._reward: LearnedReward | None = None
        self._learned = 0  # newest session whose pairs the reward is learned from
        self._held = 0  # newest session that is over
        self._sent: set[str] = set()
        self._ended = ""  # why nothing is queried any more
        self._unanswered = 0  # queries of the newest session
        self._marks: dict[str, str] = {}  # fingerprints by id; nothing replaces an episode while the training runs

    def round(self) -> bool:
        """Hold the session that is due, if one is, and reward what has no reward; return whether to try again soon."""
        started, again, why = time.monotonic(), False, self._ended
        with EpisodeStore.open(self._work.store) as store:
            rows = store.summaries()
            for row in rows:
                if row.episode_id not in self._marks:
                    self._marks[row.episode_id] = store.fingerprint(row.episode_id)
            marks = self._marks
            online = [row.episode_id for row in rows if not row.facts.demonstration]
            self._sessions.drop_outdated(marks.get)
            due = len(online) // self._settings.episodes
            if due > self._held and not (self._ended and self._reward):
                later = set(online[due * self._settings.episodes :])
                pool = {row.episode_id: row.length for row in rows if row.episode_id not in later}
                done = self._hold(store, due, pool, marks)
                again, why = bool(self._unanswered and not self._ended), done.stopped
                self._held = due if not again else self._held
                self._work.send(done)
                self._sent.clear()
            left = []
            for row in rows:
                if self._reward is None:
                    left.append(row.episode_id)
                elif row.episode_id not in self._sent:
                    closeness = self._reward.closeness(self._of(store, row.episode_id, marks)[1:])
                    self._work.send(StepsRewarded(row.episode_id, closeness))
                    self._sent.add(row.episode_id)
        self._work.send(RoundDone(tuple(left), why, time.monotonic() - started))
        return again

    def _hold(self, store: EpisodeStore, due: int, pool: Mapping[str, int], marks: Mapping[str, str]) -> SessionDone:
        """Query the pairs of a session, and learn the reward from those of all sessions up to it."""
        started, moments = time.monotonic(), {name: self._of(store, name, marks) for name in pool}
        units = Units(store, self._config, self._work.order.task)
        earlier = self._sessions.numbers(due - 1)
        chosen = Choice([], None, None)
        if due not in self._sessions.numbers(due) and not self._ended:
            if earlier and self._learned != earlier[-1]:
                self._learn(units, earlier, moments)
            chosen = self._choose(due, earlier, pool, moments)
            self._sessions.write(due, chosen.pairs, marks.get)
        numbers = self._sessions.numbers(due)
        work = Labelling(self._work.labels, self._name, self._work.backend, streak=self._streak)
        both = [unit for n in numbers for pair in self._sessions.pairs(n) for unit in units.in_both_orders(*pair)]
        done = work.run([] if self._ended else both)
        self._unanswered = done.unanswered
        try:
            self._streak.check()
            self._work.budget.check()
        except (BudgetSpentError, ValuelessAnswersError) as error:
            self._ended = f"{error}; no more pairs are queried, the reward learned so far goes on"
        known = self._learn(units, numbers, moments)
        why = self._ended or done.stopped or lacking(known)
        return SessionDone(
            session=due,
            pairs=len(known.pairs),
            skipped=known.skipped,
            flip_rate=known.flip_rate,
            accuracy=self._reward.accuracy if self._reward else None,
            disagreement=chosen.disagreement,
            disagreement_drawn=chosen.drawn,
            queried=done.queried,
            cost=done.cost,
            seconds=time.monotonic() - started,
            stopped=why,
        )

    def _choose(self, due: int, earlier: list[int], pool: Mapping[str, int], moments: Mapping[str, Tensor]) -> Choice:
        return choose_pairs(
            pool,
            self._config,
            [pair for number in earlier for pair in self._sessions.pairs(number)],
            count=self._settings.pairs,
            candidates=self._settings.candidates,
            rng=np.random.default_rng((self._config.seed, due)),
            ensemble=self._reward.ensemble if self._reward else None,
            moments=moments,
        )

    def _learn(self, units: Units, numbers: list[int], moments: Mapping[str, Tensor]) -> Preferences:
        """Learn the reward from the answers to the pairs of these sessions, in the order of the pairs."""
        rows = []
        for pair in (pair for number in numbers for pair in self._sessions.pairs(number)):
            for unit in units.in_both_orders(*pair):
                answer = self._work.labels.find(self._name, unit.subject)
                rows += [] if answer is None else [_label(unit.subject, answer)]
        known = combine_orders(rows)
        seed = int(np.random.default_rng((self._config.seed, numbers[-1])).integers(2**31))
        if learned := LearnedReward.of(known, moments, seed, self._settings.updates):
            self._reward, self._learned = learned, numbers[-1]
        return known

    def _of(self, store: EpisodeStore, name: str, marks: Mapping[str, str]) -> Tensor:
        """Return the features of the observations of an episode, computed once."""
        key = name, marks[name]
        if key not in self._moments:
            self._moments[key] = self._encode(store.read(name))
        return self._moments[key]


def _label(subject: str, answer: Answer) -> Label:
    return Label("", tuple(json.loads(subject)), answer, "")
