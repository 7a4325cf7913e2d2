"""A cascade: the second labeller is queried exactly where the first is not sure."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from model_server import ModelServer, says_success
from raw_server import RawServer
from scenes import stamped_store

from robot_rl.config.labelling import BudgetConfig, CascadeConfig, EndpointConfig, FramesConfig, LabelConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError, DataError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.success_head import SuccessHead
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate import Labelling
from robot_rl.reward.labels.units import Units
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.cascade_backend import CascadeBackend
from robot_rl.reward.vlm.make_backend import make_backend

QUERY = Query(QueryKind.SUCCESS, "push", (Clip("e", "f", "front", (0,), np.zeros((1, 4, 4, 3), np.uint8)),))


class Fixed:
    """A labeller with one answer."""

    concurrency = 3

    def __init__(self, name, answer):
        self.identity, self._answer, self.calls = {"model": name, "trained_on": [name]}, answer, 0

    def answer(self, query):
        del query
        self.calls += 1
        return self._answer

    def close(self):
        pass


@given(st.floats(0, 1), st.floats(0.51, 1))
def test_the_second_answers_exactly_where_the_first_is_not_sure(probability, sure):
    first = Fixed("head", Answer(Status.OK, (probability,), cost=1.0))
    second = Fixed("model", Answer(Status.OK, (0.25,), cost=2.0, attempts=2))
    found = CascadeBackend(first, second, sure).answer(QUERY)
    stands = probability >= sure or 1.0 - probability >= sure
    assert second.calls == (not stands)
    assert found.values == ((probability,) if stands else (0.25,))
    assert (found.attempts, found.cost) == ((0, 1.0) if stands else (2, 3.0))
    assert found.details["answered_by"] == ("first" if stands else "second")


@pytest.mark.parametrize("status", [Status.UNSURE, Status.UNPARSABLE, Status.REFUSED])
def test_an_answer_without_a_value_is_no_sure_one(status):
    second = Fixed("model", Answer(Status.OK, (0.25,)))
    assert CascadeBackend(Fixed("head", Answer(status)), second, 0.9).answer(QUERY).values == (0.25,)


def test_both_labellers_and_what_they_were_trained_on_belong_to_its_labels():
    one = CascadeBackend(Fixed("head", None), Fixed("model", None), 0.9)
    assert one.identity["trained_on"] == ["head", "model"]
    assert (one.identity["model"], one.concurrency) == ("head, then model", 3)
    assert one.identity != CascadeBackend(Fixed("head", None), Fixed("model", None), 0.8).identity


def constant_head(file, log_odds):
    """A head that gives every episode the same probability."""
    width = FrameFeatures("random", 64)(np.zeros((1, 64, 64, 3), np.uint8)).shape[1]
    zeros, members = torch.zeros(width), torch.full((3,), log_odds)
    head = SuccessHead("random", 64, "front", "push", ("e1",), zeros, torch.ones(width), torch.zeros(3, width), members)
    head.write(file)
    return file


def config(server, head, **settings):
    return LabelConfig(
        endpoint=EndpointConfig(url=server.url, key_variable="NO_KEY"),
        cascade=CascadeConfig(head=str(head), **settings),
        frames=FramesConfig(count=2),
    )


@pytest.mark.parametrize(("log_odds", "spared"), [(9.0, 6), (-9.0, 6), (0.0, 0)])
def test_calls_are_made_only_for_what_the_head_leaves(tmp_path, log_odds, spared):
    path, head = stamped_store(tmp_path / "s", 6), constant_head(tmp_path / "head.pt", log_odds)
    with (
        ModelServer(says_success) as server,
        EpisodeStore.open(path) as store,
        LabelStore(path, create=True) as labels,
    ):
        settings = config(server, head)
        backend = make_backend(settings, Budget(BudgetConfig(calls=6)))
        labels.begin("x", QueryKind.SUCCESS, backend.identity, {})
        done = Labelling(labels, "x", backend).run(Units(store, settings, "push"))
        backend.close()
        assert (done.queried, done.stopped, done.summary()["spared"]) == (6, "", spared)
        assert len(server.requests) == 6 - spared
        assert labels.trained_on("x") == ["e1"]


def test_a_cascade_that_cannot_be_is_refused_before_the_first_connection(tmp_path):
    head = constant_head(tmp_path / "head.pt", 0.0)
    with RawServer([]) as server:
        for settings, error in (
            (LabelConfig(kind="progress", cascade=CascadeConfig(head=str(head))), ConfigError),
            (LabelConfig(backend="head", head="x", cascade=CascadeConfig(head=str(head))), ConfigError),
            (config(server, tmp_path / "none.pt"), DataError),
        ):
            with pytest.raises(error):
                make_backend(settings, Budget(BudgetConfig()))
        assert server.connections == 0
