"""What every `Backend` of a labeller has to do. Subclass `LabellerContract`, give it a `labeller` fixture, and run it.

class TestMyLabeller(LabellerContract):
    @pytest.fixture
    def labeller(self): return LabellerUnderTest(make=..., kind=QueryKind.SUCCESS)
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

from robot_rl.config.labelling import BudgetConfig
from robot_rl.errors import BudgetSpentError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.backend import Backend
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.query import Clip, Query, QueryKind, canonical

BOUNDED = (QueryKind.SUCCESS, QueryKind.PROGRESS, QueryKind.PREFERENCE)


@dataclass(frozen=True)
class LabellerUnderTest:
    """A labeller whose answers follow from the query alone.

    Attributes:
        make: Makes it, with a budget.
        kind: Kind of the queries that it answers.
        task: Task that it knows.
        camera: Camera that it knows.
        size: Height and width of the frames [px].
        frames: Frames of a clip.
        readable: Whether its answers have values; tiny random models write nonsense.
    """

    make: Callable[[Budget], Backend]
    kind: QueryKind
    task: str = "push the cube"
    camera: str = "front"
    size: tuple[int, int] = (64, 64)
    frames: int = 4
    readable: bool = True

    def query(self, seed: int) -> Query:
        """A query about random frames."""
        clips = 2 if self.kind is QueryKind.PREFERENCE else 1
        count = 1 if self.kind is QueryKind.PREFERENCE else self.frames
        return Query(self.kind, self.task, tuple(self._clip(10 * seed + n, count) for n in range(clips)))

    def values(self) -> int:
        """Length of the values of an answer."""
        return self.frames if self.kind in (QueryKind.PROGRESS, QueryKind.SCORE) else 1

    def _clip(self, seed: int, count: int) -> Clip:
        frames = np.random.default_rng(seed).integers(0, 256, (count, *self.size, 3), np.uint8)
        return Clip(f"episode-{seed}", f"fingerprint-{seed}", self.camera, tuple(range(count)), frames)


def content(answer: Answer) -> tuple[Status, tuple[float, ...], str]:
    """What must not change from one call to the next; latency and attempts may."""
    return answer.status, tuple(round(value, 5) for value in answer.values), answer.raw


class LabellerContract:
    """The tests."""

    @pytest.fixture
    def backend(self, labeller):
        made = labeller.make(Budget(BudgetConfig()))
        yield made
        made.close()

    def test_its_identity_is_json_and_does_not_change(self, labeller, backend):
        before = canonical(dict(backend.identity))
        backend.answer(labeller.query(0))
        assert canonical(dict(backend.identity)) == before
        other = labeller.make(Budget(BudgetConfig()))
        assert canonical(dict(other.identity)) == before
        other.close()
        identity = json.loads(before)
        assert identity["backend"]
        assert identity["model"]

    def test_an_answer_has_the_values_of_its_kind(self, labeller, backend):
        answer = backend.answer(labeller.query(1))
        assert answer.latency >= 0
        assert answer.attempts >= 1
        canonical(dict(answer.details))  # JSON values
        if not labeller.readable:
            assert (answer.status is Status.OK) == bool(answer.values)
            return
        assert answer.status is Status.OK
        assert len(answer.values) == labeller.values()
        assert np.isfinite(answer.values).all()
        if labeller.kind in BOUNDED:
            assert 0.0 <= min(answer.values) <= max(answer.values) <= 1.0

    def test_the_same_query_has_the_same_answer(self, labeller, backend):
        other = labeller.make(Budget(BudgetConfig()))
        answers = [
            backend.answer(labeller.query(2)),
            backend.answer(labeller.query(2)),
            other.answer(labeller.query(2)),
        ]
        other.close()
        assert len({content(answer) for answer in answers}) == 1

    def test_the_frames_stay_as_they_are(self, labeller, backend):
        query = labeller.query(3)
        before = [clip.digest() for clip in query.clips]
        backend.answer(query)
        assert [clip.digest() for clip in query.clips] == before

    def test_threads_get_the_answers_to_their_own_queries(self, labeller, backend):
        assert backend.concurrency >= 1
        queries = [labeller.query(seed) for seed in range(4, 10)]
        alone = [content(backend.answer(query)) for query in queries]
        with ThreadPoolExecutor(backend.concurrency + 1) as pool:
            together = [content(answer) for answer in pool.map(backend.answer, queries)]
        assert together == alone

    def test_every_call_counts_and_none_follows_when_the_budget_is_spent(self, labeller):
        budget = Budget(BudgetConfig(calls=2))
        backend = labeller.make(budget)
        used = budget.calls
        for seed in range(2 - used):
            backend.answer(labeller.query(seed))
        assert budget.calls == 2
        with pytest.raises(BudgetSpentError, match="calls"):
            backend.answer(labeller.query(9))
        assert budget.calls == 2
        backend.close()

    def test_a_label_store_keeps_the_answer(self, labeller, backend, tmp_path):
        query = labeller.query(1)
        answer, identity = backend.answer(query), backend.identity
        with LabelStore(tmp_path, create=True) as store:
            store.begin("mine", labeller.kind, identity, {})
            store.add("mine", query.subject, query.key(identity), answer, identity)
            assert content(store.find("mine", query.subject)) == content(answer)

    def test_it_may_be_closed_twice(self, labeller):
        backend = labeller.make(Budget(BudgetConfig()))
        backend.close()
        backend.close()
