"""Labelling: queries for all units without a label, several at a time; each answer is stored as soon as it arrives."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_rl.errors import BudgetSpentError, ServerBusyError, UnansweredError, ValuelessAnswersError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.backend import Backend
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.units import Unit
from robot_rl.reward.labels.valueless import ValuelessStreak, reason_of

GIVE_UP = 5
"""Queries in a row without an answer after which the run stops."""


@dataclass
class AnnotationProgress:
    """Counts of a labelling run.

    Attributes:
        known: Units that had a label, or whose answer was known, so that no query was made.
        queried: Units that were answered by a query.
        statuses: Number of answers by status.
        reasons: Number of answers without a value by why they have none.
        unanswered: Units without an answer; the next run queries them again.
        requests: Requests that the answers took.
        spared: Answers that took none: a cheap labeller was sure, see `CascadeBackend`.
        prompt_tokens: Together.
        reply_tokens: Together.
        cost: Together.
        latencies: Of each answer [s].
        seconds: Since the start.
        stopped: Why it ended before all units had a label; empty if they have.
    """

    known: int = 0
    queried: int = 0
    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Status), 0))
    reasons: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    requests: int = 0
    spared: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: float = 0.0
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    stopped: str = ""

    def count(self, answer: Answer) -> None:
        """Add one answer."""
        self.queried += 1
        self.statuses[answer.status] += 1
        self.reasons.update(filter(None, [reason_of(answer)]))
        self.requests += answer.attempts
        self.spared += answer.attempts == 0
        self.prompt_tokens += answer.prompt_tokens
        self.reply_tokens += answer.reply_tokens
        self.cost += answer.cost
        self.latencies.append(answer.latency)

    def summary(self) -> dict[str, Any]:
        """Return the counts, rates and quantiles as JSON values."""
        p50, p95 = np.quantile(self.latencies, [0.5, 0.95]).tolist() if self.latencies else (None, None)
        return {
            "known": self.known,
            "queried": self.queried,
            **self.statuses,
            "reasons": dict(self.reasons.most_common()),
            "unanswered": self.unanswered,
            "requests": self.requests,
            "spared": self.spared,
            "prompt_tokens": self.prompt_tokens,
            "reply_tokens": self.reply_tokens,
            "cost": self.cost,
            "seconds": self.seconds,
            "labels_per_s": self.queried / self.seconds if self.seconds else 0.0,
            "latency_p50_s": p50,
            "latency_p95_s": p95,
            "stopped": self.stopped,
        }


class Labelling:
    """A run of one labeller over one store.

    Args:
        labels: Where labels go; `begin` was called for `name`.
        name: Of the labels.
        backend: Answers the queries.
        on_label: Receives the subject and the answer of each new label, and whether a query was made for it; otherwise
            the answer to the same query was known.
        streak: Of the answers before these; none starts anew.
    """

    def __init__(
        self,
        labels: LabelStore,
        name: str,
        backend: Backend,
        on_label: Callable[[str, Answer, bool], object] = lambda _subject, _answer, _queried: None,
        streak: ValuelessStreak | None = None,
    ) -> None:
        self._labels, self._name, self._backend, self._on_label = labels, name, backend, on_label
        self._identity: Mapping[str, Any] = backend.identity
        self.progress = AnnotationProgress()
        self._under_way: dict[Future[Answer], tuple[str, list[str]]] = {}  # key, and subjects that wait for it
        self._in_a_row = 0
        self._streak = streak or ValuelessStreak()
        self._started = time.monotonic()

    def run(
        self, units: Iterable[Unit], on_unit: Callable[[AnnotationProgress], object] = lambda _: None
    ) -> AnnotationProgress:
        """Label all units that have no label yet.

        It ends early, with the reason in `stopped`, when the budget is spent, or the server gives no answers, or none
        with values.

        Args:
            units: What to label.
            on_unit: Called after each unit.

        Raises:
            RobotRLError: if no unit can be answered. Answers under way are stored before that is raised, also when it
                is interrupted.
        """
        self._started = time.monotonic()
        pool = ThreadPoolExecutor(self._backend.concurrency, thread_name_prefix="label")
        try:
            for unit in units:
                if not self._known(unit, pool):
                    while len(self._under_way) >= self._backend.concurrency:
                        self._collect()
                        on_unit(self.progress)
                    if self.progress.stopped:
                        break
                on_unit(self.progress)
            while self._under_way:
                self._collect()
                on_unit(self.progress)
        except BaseException:
            self._save_what_arrives()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
            self.progress.seconds = time.monotonic() - self._started
        return self.progress

    def _known(self, unit: Unit, pool: ThreadPoolExecutor) -> bool:
        """Return True if the answer is known; otherwise start a query."""
        if self._labels.has(self._name, unit.subject):
            self.progress.known += 1
            return True
        query = unit.query()
        key = query.key(self._identity)
        if self._labels.link(self._name, unit.subject, key):
            self.progress.known += 1
            if (answer := self._labels.find(self._name, unit.subject)) is not None:
                self._on_label(unit.subject, answer, False)
            return True
        for other, subjects in self._under_way.values():
            if other == key:
                subjects.append(unit.subject)
                self.progress.known += 1
                return True
        self._under_way[pool.submit(self._backend.answer, query)] = (key, [unit.subject])
        return False

    def _collect(self) -> None:
        """Wait for at least one answer and store all that have come."""
        done, _ = wait(self._under_way, return_when=FIRST_COMPLETED)
        for future in done:
            self._store(future)
        self.progress.seconds = time.monotonic() - self._started

    def _store(self, future: Future[Answer]) -> None:
        key, subjects = self._under_way.pop(future)
        try:
            answer = future.result()
        except UnansweredError as error:
            self.progress.unanswered += len(subjects)
            self._in_a_row += 1
            if isinstance(error, ServerBusyError):
                self.progress.stopped = str(error)
            elif self._in_a_row >= GIVE_UP:
                self.progress.stopped = f"{self._in_a_row} queries in a row were not answered: {error}"
            return
        except BudgetSpentError as error:
            self.progress.stopped = self.progress.stopped or str(error)
            return
        self._in_a_row = 0
        for subject in subjects:
            self._labels.add(self._name, subject, key, answer, self._identity)
            self._on_label(subject, answer, subject == subjects[0])
        self.progress.count(answer)
        self._streak.add(answer)
        try:
            self._streak.check()
        except ValuelessAnswersError as error:
            self.progress.stopped = self.progress.stopped or str(error)

    def _save_what_arrives(self) -> None:
        """Store the answers under way, which are paid for, when a query failed or Ctrl-C was pressed."""
        self._backend.close()  # so that nothing is tried again; what is on its way still comes
        for future in self._under_way:
            future.cancel()
        wait(self._under_way)
        for future in [f for f in self._under_way if not f.cancelled() and f.exception() is None]:
            self._store(future)
        self._under_way.clear()
