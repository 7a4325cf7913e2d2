"""A policy behind a real websocket, and what one line says when it is not as it should be."""

import time

import numpy as np
import pytest
from base_policy_contract import TASK, BasePolicyContract, history, setup_of
from policy_server import PolicyServer, packed

from robot_rl.base_policy import server
from robot_rl.base_policy.contract import checked_chunk, make_base
from robot_rl.base_policy.openpi_messages import pack, unpack
from robot_rl.errors import BasePolicyError


@pytest.fixture
def tiny():
    made = PolicyServer()
    yield made
    made.stop()


@pytest.fixture
def setup(tiny):
    return setup_of("server", tiny.address)


@pytest.fixture
def base(setup):
    made = make_base(setup)
    yield made
    made.close()


class TestServer(BasePolicyContract):
    @pytest.fixture
    def setup(self, setup):
        return setup

    @pytest.fixture
    def base(self, base):
        return base


def test_it_sends_what_is_observed_and_takes_the_actions(tiny, base):
    chunk = checked_chunk(base.plan(history()), base)
    assert (chunk.actions[:, :2] == 0.25).all()
    sent = tiny.seen[-1]
    np.testing.assert_allclose(sent["state/way"], history()[-1].observation["state/way"], rtol=1e-6)
    assert sent["prompt"] == TASK.instruction
    assert base.spec.ahead, "it may be slow"


def test_observations_have_the_names_that_the_server_knows(tiny):
    names = ("observation/state=state/way+state/width",)
    base = make_base(setup_of("server", tiny.address, names=names))
    base.plan(history())
    assert set(tiny.seen[-1]) == {"observation/state", "prompt"}
    assert tiny.seen[-1]["observation/state"].shape == (3,)
    base.close()


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("observation/state",), r"expected THEIRS=OURS or THEIRS=OURS\+OURS"),
        (("observation/state=state/pose",), "needs state/pose, which is not observed; valid: state/way, state/width"),
    ],
)
def test_names_that_mean_nothing_are_refused(tiny, names, said):
    with pytest.raises(BasePolicyError, match=said):
        make_base(setup_of("server", tiny.address, names=names))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"control_period": 0.02}, r"it plans every 0\.02 s, and line is controlled every 0\.1 s"),
        ({"action_dim": 7}, "its actions have 7 numbers with a gripper, those of line 3 with a gripper"),
        ({"action_dim": "many"}, "says action_dim='many'; expected a positive number"),
        ({"action_dim": True}, "says action_dim=True; expected a positive number"),
        ({"control_period": None}, "says control_period=None; expected a positive number of seconds"),
        ({"control_period": "fast"}, "says control_period='fast'; expected a positive number of seconds"),
        ({"control_period": float("nan")}, "says control_period=nan; expected a positive number of seconds"),
        ({"control_period": float("inf")}, "says control_period=inf; expected a positive number of seconds"),
        ({"control_period": 0}, "says control_period=0; expected a positive number of seconds"),
        ({"arms": 5}, "says arms=5; expected a list of names"),
        ({"arms": None}, "says arms=None; expected a list of names"),
        ({"arms": "left"}, "says arms='left'; expected a list of names"),
        ({"actions": 5}, "says actions=5; expected a text"),
        ({"actions": "z 0.01 m"}, r"an action of it is z 0\.01 m, and one of line is x 0\.01 m"),
        ({"observations": {"state/way": [float("inf")]}}, "expected a shape for each name"),
        ("hello", "no policy server answers there"),
        (b"\xc1", "no policy server answers there: no msgpack"),
        ([1], "begins with a list, expected a map of facts"),
    ],
)
def test_a_server_for_something_else_is_refused_before_it_plans(facts, said):
    other = PolicyServer(facts=facts)
    with pytest.raises(BasePolicyError, match=said):
        make_base(setup_of("server", other.address))
    other.stop()


def test_a_server_that_is_refused_is_left(tiny):
    tiny.facts = {"arms": 5}
    with pytest.raises(BasePolicyError, match="arms=5") as refused:
        make_base(setup_of("server", tiny.address))
    end = time.monotonic() + 5.0
    while tiny.clients:
        assert time.monotonic() < end, f"{refused} and the connection is kept"
        time.sleep(0.01)


def test_a_closed_base_does_not_connect_again(tiny, base):
    base.close()
    with pytest.raises(BasePolicyError, match="was closed; make it anew to ask it again"):
        base.plan(history())
    assert not tiny.seen


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"actions": np.full((4, 3), np.nan)}, "NaN or an infinity"),
        ({"actions": np.zeros((4, 7))}, r"actions of shape \(4, 7\)"),
        ({"actions": np.float32(0.0)}, r"actions of shape \(\)"),
        ({"actions": np.full((4, 3), 90.0)}, "normalised in another way"),
        ({"actions": "up"}, "no `actions` of numbers"),
        ({"result": 1}, "no `actions` of numbers: KeyError"),
        (packed(np.zeros((4, 3))), "no `actions` of numbers: IndexError"),
        ([1.0], "no `actions` of numbers: TypeError"),
        (b"\xc1", "no `actions` of numbers: ValueError"),
        ("Traceback ...\nKeyError: 'observation/image'", "answered an error: KeyError: 'observation/image'"),
    ],
)
def test_nonsense_is_refused_in_one_line_with_its_address(tiny, base, answer, said):
    tiny.answer = lambda observation: answer
    with pytest.raises(BasePolicyError, match=said) as refused:
        checked_chunk(base.plan(history()), base)
    assert tiny.address in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_server_that_dies_or_is_late_is_named(tiny, base, monkeypatch):
    monkeypatch.setattr(server, "REPLY_LIMIT", 0.05)
    tiny.delay = 0.3
    with pytest.raises(BasePolicyError, match=r"has not answered for 0\.05 s"):
        base.plan(history())
    tiny.delay = 0.0
    monkeypatch.undo()
    base.plan(history())  # connected anew
    tiny.stop()
    with pytest.raises(BasePolicyError, match=r"its server is gone.*start it again"):
        base.plan(history())


@pytest.mark.parametrize(("address", "said"), [("gpu:8000", "its address is ws://"), ("ws://127.0.0.1:9", "no policy")])
def test_a_wrong_address_is_named(address, said):
    with pytest.raises(BasePolicyError, match=said):
        make_base(setup_of("server", address))


def test_messages_keep_arrays_and_refuse_what_they_should_not_hold():
    value = {"a": np.arange(6, dtype=np.uint8).reshape(2, 3), "b": np.float32(0.5), "c": ["text", 1]}
    back = unpack(pack(value))
    np.testing.assert_array_equal(back["a"], value["a"])
    assert (back["b"], back["c"]) == (0.5, ["text", 1])
    for wrong in ({b"dtype": "|O"}, {b"shape": [10**9, 3]}, {b"shape": [-1]}, {b"dtype": "nonsense"}):
        array = {b"__ndarray__": True, b"data": b"\0" * 24, b"dtype": "<f8", b"shape": [3], **wrong}
        with pytest.raises(ValueError, match=r"."):
            unpack(pack(array))
