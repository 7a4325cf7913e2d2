"""TOPReward: a query about each beginning of an episode, and the probability of True as its progress."""

import math

import numpy as np
import pytest
from model_server import Fault, ModelServer, reply, stamped

from robot_rl.config.labelling import BudgetConfig, EndpointConfig, LabelConfig
from robot_rl.errors import BudgetSpentError, UnansweredError
from robot_rl.reward.answer import Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.make_backend import make_backend

FRAMES = (3, 5, 8, 13, 9)
CLIP = Clip("e", "f", "front", tuple(range(5)), np.stack([stamped(number) for number in FRAMES]))
QUERY = Query(QueryKind.PROGRESS, "push it", (CLIP,))


def odds_of(number):
    return (number - 8) / 4


def by_newest(request):
    """The log-odds of True follow from the newest frame: (number - 8) / 4."""
    yes = 1 / (1 + math.exp(-odds_of(request.stamps[-1])))
    return reply("True", tokens=(50 * len(request.images), 1), top={"True": math.log(yes), "False": math.log(1 - yes)})


def answered(answer, *, budget=None):
    with ModelServer(answer) as server:
        endpoint = EndpointConfig(url=server.url, concurrency=1, attempts=1)
        config = LabelConfig(kind="progress", answer="logprobs", endpoint=endpoint)
        limits = Budget(budget or BudgetConfig())
        backend = make_backend(config, limits)
        return [backend.answer(QUERY)], server.requests, limits


def test_each_frame_gets_the_probability_after_the_frames_up_to_it():
    (answer,), requests, budget = answered(by_newest)
    assert [request.stamps for request in requests] == [
        [3, 3],
        [3, 5],
        [3, 5, 8],
        [3, 5, 8, 13],
        [3, 5, 8, 13, 9],
    ], "the start, then what came after it, in order"
    assert answer.status is Status.OK
    expected = [1 / (1 + math.exp(-odds_of(number))) for number in FRAMES]
    assert answer.values == pytest.approx(expected)
    assert answer.details["log_odds"] == pytest.approx([odds_of(number) for number in FRAMES])
    assert answer.details["log_true"] == pytest.approx(np.log(expected))
    assert (answer.attempts, budget.calls) == (5, 5)
    assert answer.prompt_tokens == sum(50 * len(request.images) for request in requests)
    assert "Statement: this attempt has completed the following task: push it" in requests[0].words


def test_an_episode_that_undoes_its_work_and_one_that_never_worked_do_not_end_at_one():
    (answer,), *_ = answered(by_newest)
    assert max(answer.values) == answer.values[3] > answer.values[4]
    (flat,), *_ = answered(lambda request: reply("False", top={"True": math.log(0.02), "False": math.log(0.98)}))
    assert flat.values == pytest.approx([0.02] * 5), "no scaling by the episode's own extremes"


def test_one_unreadable_reply_leaves_the_episode_without_values_and_stops():
    def odd(request):
        return by_newest(request) if len(request.images) < 3 else reply("Well", top={"Well": math.log(0.9)})

    (answer,), requests, _ = answered(odd)
    assert (answer.status, answer.values, len(requests)) == (Status.UNPARSABLE, (), 3)
    assert "the first 3 frames: neither True nor False" in answer.details["why"]
    assert answer.attempts == 3


def test_beginnings_that_were_answered_are_not_paid_twice_when_one_was_not():
    with ModelServer(by_newest) as server:
        endpoint = EndpointConfig(url=server.url, concurrency=1, attempts=1)
        budget = Budget(BudgetConfig())
        backend = make_backend(LabelConfig(kind="progress", answer="logprobs", endpoint=endpoint), budget)
        server.faults.extend([None, None, None, Fault(500, b"{}")])
        with pytest.raises(UnansweredError):
            backend.answer(QUERY)
        assert len(server.requests) == 4
        answer = backend.answer(QUERY)
        assert (answer.status, len(server.requests)) == (Status.OK, 6)
        again = backend.answer(QUERY)
        assert (again.values, len(server.requests)) == (answer.values, 11), "an answer is kept by the store, not here"


def test_the_budget_counts_each_beginning():
    with pytest.raises(BudgetSpentError, match="calls: 3 of 3 used"):
        answered(by_newest, budget=BudgetConfig(calls=3))
