"""The step from which on an episode was a success, by a labeller whose answers follow from the last frame."""

import dataclasses
from types import MappingProxyType

import pytest
from model_server import stamp_of
from scenes import FRAMES, stamped_episode

from robot_rl.config.labelling import FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import UnansweredError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.onset import Onset
from robot_rl.reward.labels.process_messages import (
    TO_LABELLER,
    TO_TRAINING,
    Labelled,
    LabellerEnded,
    LabellingOrder,
    Order,
    RoundDone,
)
from robot_rl.reward.validation.probability_calibration import Calibration

STEPS = 18
SUCCESS, FAILURE = Answer(Status.OK, (0.9,)), Answer(Status.OK, (0.1,))


class Counting:
    """Answers that the task is done from a row on; it counts the queries, and may fall silent after some."""

    concurrency = 1
    identity = MappingProxyType({"backend": "test", "model": "from a row on"})

    def __init__(self, since, silent_after=1000):
        self.since, self.silent_after, self.queries = since, silent_after, 0

    def answer(self, query):
        self.queries += 1
        if self.queries > self.silent_after:
            raise UnansweredError("silent")
        done = stamp_of(query.clips[0].frames[-1]) % FRAMES >= self.since
        return dataclasses.replace(SUCCESS if done else FAILURE, cost=0.5)

    def close(self):
        pass


@pytest.fixture
def path(tmp_path):
    with EpisodeStore.create(tmp_path / "s", {"task": "push"}) as store:
        one = stamped_episode(0, STEPS)
        store.append(dataclasses.replace(one, metadata={"task": "push"}))  # nobody knows the outcome
    return tmp_path / "s"


def found(path, backend, label=SUCCESS, **order):
    config = LabelConfig(frames=FramesConfig(count=2))
    settings = Order("mine", config, "push it", dict(backend.identity), **order)
    with EpisodeStore.open(path) as store, LabelStore(path, create=True) as labels:
        (row,) = store.summaries()
        return Onset(path, settings, labels, backend, dict(backend.identity)).of(row, label)


@pytest.mark.parametrize("since", range(1, STEPS + 1))
def test_every_onset_is_found_by_halving(path, since):
    backend = Counting(since)
    at, cost = found(path, backend)
    assert at == since
    assert backend.queries <= 5, "log2 of 18"
    assert cost == pytest.approx(0.5 * backend.queries)


def test_a_second_search_costs_nothing(path):
    backend = Counting(7)
    first, queries = found(path, backend), backend.queries
    assert found(path, backend) == (first[0], 0.0)
    assert backend.queries == queries


@pytest.mark.parametrize("silent_after", range(5))
def test_without_an_answer_it_is_late_but_never_early(path, silent_after):
    at, _ = found(path, Counting(6, silent_after))
    assert 6 <= at <= STEPS


@pytest.mark.parametrize("label", [FAILURE, Answer(Status.UNSURE), Answer(Status.UNPARSABLE)])
def test_what_is_no_success_has_no_onset(path, label):
    backend = Counting(3)
    assert found(path, backend, label) == (0, 0.0)
    assert backend.queries == 0


def test_the_calibration_decides_what_is_a_success(path):
    strict = Calibration("mine", 1.0, 0.0, 0.95, (), 0)
    assert found(path, Counting(3), calibration=strict) == (0, 0.0)


@pytest.mark.parametrize(
    "message",
    [
        Labelled("e", "ok", (0.5,), None, True, 0.25, 3),
        Labelled("e", "refused", (), 1.5, False, 0.0),
        RoundDone(("a", "b"), "busy", 2.5),
        LabellerEnded("budget", False),
    ],
    ids=lambda one: type(one).__name__,
)
def test_messages_between_training_and_labeller_come_back_as_they_were(message):
    assert TO_TRAINING.decode(TO_TRAINING.encode(message)) == message


def test_an_order_comes_back_with_its_calibration():
    order = Order("mine", LabelConfig(), "push", {"model": "m"}, Calibration("mine", 0.5, 0.1, 0.9, ("e",), 1), True)
    received = TO_LABELLER.decode(TO_LABELLER.encode(LabellingOrder.of(order)))
    assert received.order() == order
