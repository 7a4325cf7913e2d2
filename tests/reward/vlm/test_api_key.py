"""The key of a server, which neither a label nor a message may hold, however it comes back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_server import KEY_VARIABLE, MODEL, Fault, ModelServer, refusal, reply
from raw_server import RawServer

from robot_rl.config.labelling import BudgetConfig, EndpointConfig
from robot_rl.errors import EndpointError, RobotRLError
from robot_rl.reward.budget import Budget
from robot_rl.reward.vlm.api_key import ApiKey
from robot_rl.reward.vlm.chat_model import Turn
from robot_rl.reward.vlm.openai_client import Endpoint

KEY = "sk-Secret/0123+45="


@pytest.fixture
def key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return ApiKey(KEY_VARIABLE)


def complete(server):
    config = EndpointConfig(url=server.url, model=MODEL, attempts=1, timeout_s=2.0, key_variable=KEY_VARIABLE)
    one = Endpoint(config, Budget(BudgetConfig()))
    return one.complete(Turn(("True?",), choices=("True", "False")))


def escaped(text):
    return "".join(f"\\u{ord(character):04x}" for character in text)


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("written", [KEY, escaped(KEY), json.dumps(escaped(KEY))[1:-1], KEY.replace("/", "\\/")])
def test_a_model_that_repeats_the_key_does_not_bring_it_into_the_label(written):
    body = json.dumps(reply("it is HERE", top={"True": -0.1, "HERE": -3.0})).replace(MODEL, "model HERE")
    with ModelServer(lambda _: body.replace("HERE", written).encode()) as server:
        done = complete(server)
    assert done.text == "it is (key)"
    assert done.first_token[1][0] == "(key)"
    assert done.served_by["model"] == "model (key)"


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    "fault",
    [
        refusal(400, f"bad key {KEY}"),
        refusal(500, f"bad key {KEY}"),
        Fault(401, KEY.encode()),
        Fault(302, headers={"Location": f"http://elsewhere/v1/{KEY}"}),
        Fault(302, headers={"Location": f"http://u:{KEY}@elsewhere/v1?key={KEY}#{KEY}"}),
        Fault(302, headers={"Location": "http://elsewhere/" + KEY.replace("/", "%2F").replace("=", "%3d")}),
        Fault(200, KEY.encode()),
        Fault(200, json.dumps({"choices": KEY}).encode()),
    ],
)
def test_no_message_holds_the_key(fault):
    with ModelServer(lambda _: reply("x"), faults=[fault]) as server, pytest.raises(RobotRLError) as caught:
        complete(server)
    for shown in (str(caught.value), repr(caught.value)):
        assert "Secret" not in shown
        assert "0123" not in shown


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    "piece",
    [
        f"HTTP/1.1 {KEY} no\r\n\r\n",
        f"{KEY}\r\n\r\n",
        f"HTTP/1.1 200 OK\r\nContent-Length: {KEY}\r\n\r\n",
        f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{KEY}\r\n",
        f"HTTP/1.1 200 OK\r\nContent-Encoding: {KEY}\r\nContent-Length: 3\r\n\r\nabc",
    ],
)
def test_no_message_about_a_broken_reply_holds_the_key(piece):
    with RawServer([piece.encode()], hangs_up=True) as server, pytest.raises(RobotRLError) as caught:
        complete(server)
    assert "Secret" not in str(caught.value)


@given(st.binary(max_size=200))
def test_a_reply_without_the_key_is_left_as_it_is(body):
    assert KEY_OF_TEST.hide_in_reply(body) == body


@given(st.text(max_size=30), st.text(max_size=30), st.booleans())
def test_json_stays_json(before, after, ascii_only):
    text = json.dumps([before + KEY + after], ensure_ascii=ascii_only)
    hidden = json.loads(
        KEY_OF_TEST.hide_in_reply(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    )
    assert KEY not in hidden[0]
    assert "(key)" in hidden[0]


@pytest.mark.parametrize("value", ["sk-line\nbreak", "sk-\u00fcber", "sk-back\\slash"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(value, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, value)
    with pytest.raises(EndpointError, match="cannot be sent") as caught:
        ApiKey(KEY_VARIABLE)
    assert "sk-" not in str(caught.value)


def test_a_stand_in_for_a_key_stays_in_replies(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "EMPTY")
    assert ApiKey(KEY_VARIABLE).hide_in_reply(b"the box is EMPTY") == b"the box is EMPTY"


def made_key():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY_VARIABLE, KEY)
        return ApiKey(KEY_VARIABLE)


KEY_OF_TEST = made_key()
