"""Limits of time, size, waits and cost, against servers that keep to none."""

import functools
import json
import logging
import resource
import threading
import time
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import MODEL, Fault, ModelServer, refusal, reply
from raw_server import BODY, RawServer, bytewise, whole, zipped_zeros

from robot_rl.config.labelling import BudgetConfig, EndpointConfig
from robot_rl.errors import BudgetSpentError, ConfigError, EndpointError, ServerBusyError, UnansweredError
from robot_rl.reward.budget import Budget
from robot_rl.reward.vlm.chat_model import Turn
from robot_rl.reward.vlm.openai_client import Endpoint

TURN = Turn(("What is it?",))
PRICES = {"price_prompt": 1.0, "price_reply": 4.0}


def endpoint(server, budget=None, **given_settings):
    given_settings = {"backoff_s": 0.001, "timeout_s": 5.0, "key_variable": "NO_KEY"} | given_settings
    return Endpoint(EndpointConfig(url=server.url, model=MODEL, **given_settings), Budget(budget or BudgetConfig()))


HEAD = b"".join(whole(BODY)[:-1])
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "hangs_up"),
    [
        (bytewise(HEAD), False),
        ([b"HTTP/1.1 100 Continue\r\n\r\n"] * 100, False),
        ([CHUNKED, *bytewise(b"0" * 40 + b"%x\r\n" % len(BODY))], False),
        ([CHUNKED, *[b"1\r\n{\r\n"] * 100], False),
        ([b"HTTP/1.0 200 OK\r\n\r\n", *bytewise(BODY)], True),
        ([], False),
    ],
    ids=["headers", "continue", "length of a chunk", "chunks", "body without a length", "nothing"],
)
def test_no_server_takes_longer_than_the_time_of_the_attempt(pieces, hangs_up):
    with RawServer(pieces, 0.05, hangs_up=hangs_up) as server:
        started = time.monotonic()
        with pytest.raises(UnansweredError, match=r"not complete in time|timed out"):
            endpoint(server, timeout_s=0.4, attempts=1).complete(TURN)
        assert time.monotonic() - started < 1.0


@functools.cache
def bombs():
    size = 2 * 10**8
    return {
        "gzip": whole(zipped_zeros(size), b"Content-Encoding: gzip"),
        "gzip of gzip": whole(zipped_zeros(size, 2), b"Content-Encoding: gzip, gzip"),
        "deflate": whole(zlib.compress(bytes(size)), b"Content-Encoding: deflate"),
    }


@pytest.mark.parametrize("kind", ["gzip", "gzip of gzip", "deflate"])
def test_a_reply_that_is_large_only_when_unpacked_is_not_unpacked_whole(kind):
    pieces, before = bombs()[kind], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with RawServer(pieces) as server, pytest.raises(UnansweredError, match="larger than 4194304 bytes"):
        endpoint(server, attempts=1).complete(TURN)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024


def test_a_wait_of_an_hour_ends_the_labelling_and_no_other_query_is_sent_meanwhile():
    with ModelServer(lambda _: reply("fine"), faults=[refusal(429, "later", Retry_After="3600")]) as server:
        one = endpoint(server)
        with pytest.raises(ServerBusyError, match=r"requests a wait of 3600 s, more than endpoint.longest_wait_s=300"):
            one.complete(TURN)
        with pytest.raises(ServerBusyError, match="so it replied to another query"):
            one.complete(TURN)
        assert len(server.requests) == 1


@pytest.mark.parametrize("value", ["9" * 400, "9" * 5000, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_wait_of_ages_is_a_wait_too_long(value):
    with (
        ModelServer(lambda _: reply("fine"), faults=[refusal(503, "later", Retry_After=value)]) as server,
        pytest.raises(ServerBusyError),
    ):
        endpoint(server).complete(TURN)


@pytest.mark.parametrize(
    "value", ["-5", "nan", "inf", "soon", "", "1e9", "Fri, 99 Foo 2020", "Mon, 01 Jan 1990 00:00:00 GMT"]
)
def test_a_wait_that_is_none_is_no_wait(value):
    with ModelServer(lambda _: reply("fine"), faults=[refusal(503, "later", Retry_After=value)]) as server:
        assert endpoint(server).complete(TURN).attempts == 2


def test_a_long_wait_that_is_obeyed_is_reported(caplog):
    caplog.set_level(logging.WARNING)
    with ModelServer(lambda _: reply("fine"), faults=[refusal(429, "slow down", Retry_After="100")]) as server:
        one, failed = endpoint(server), []

        def query():
            try:
                one.complete(TURN)
            except UnansweredError as error:
                failed.append(error)

        thread = threading.Thread(target=query)
        thread.start()
        while not caplog.messages:
            time.sleep(0.01)
        one.close()
        thread.join(10)
    assert failed
    assert "HTTP 429: slow down; the next attempt, 2 of 5, is in 100 s" in caplog.text


def test_a_limit_on_money_needs_prices():
    with ModelServer(lambda _: reply("fine")) as server:
        with pytest.raises(ConfigError, match=r"limits nothing without prices; set endpoint.price_prompt"):
            endpoint(server, BudgetConfig(money=1.0))
        assert endpoint(server, BudgetConfig(money=1.0), price_reply=4.0).complete(TURN).text == "fine"


@pytest.mark.parametrize("fault", [Fault(200, b"oops"), Fault(200, BODY[:-9])], ids=["no JSON", "cut off"])
def test_unreadable_replies_count_as_the_most_that_they_may_have_cost(fault):
    """40 requests were made on a budget of a thousandth, because replies without a count were free."""
    limit = 0.01
    with ModelServer(lambda _: reply("fine"), faults=[fault] * 100) as server:
        budget = Budget(BudgetConfig(money=limit))
        one = Endpoint(EndpointConfig(url=server.url, model=MODEL, attempts=40, backoff_s=0.001, **PRICES), budget)
        with pytest.raises(BudgetSpentError, match="money"):
            one.complete(TURN)
        most_of_reply = 512 * 4.0 / 1e6
        assert 1 <= len(server.requests) <= limit / most_of_reply
        assert budget.money <= limit


def test_requests_that_reach_no_server_cost_nothing():
    server = ModelServer(lambda _: reply("fine"))
    server.close()
    budget = Budget(BudgetConfig(money=1.0))
    one = Endpoint(EndpointConfig(url=server.url, model=MODEL, attempts=3, backoff_s=0.001, **PRICES), budget)
    with pytest.raises(UnansweredError, match="Connection refused"):
        one.complete(TURN)
    assert (budget.calls, budget.tokens, budget.money) == (3, 0, 0.0)


LIES = st.sampled_from([None, -1, -(10**9), 0.5, 10**30, 1e300, "-5", "NaN", "Infinity", 0])


def test_a_use_that_cannot_be_true_neither_counts_nor_lifts_the_limit():
    usage = {}
    with ModelServer(lambda _: {**reply("fine"), "usage": usage}) as server:

        @settings(max_examples=20, deadline=None)
        @given(LIES, LIES)
        def check(prompt, completion):
            usage.update(prompt_tokens=prompt, completion_tokens=completion)
            limited, free = Budget(BudgetConfig(tokens=10**5)), Budget(BudgetConfig())
            with pytest.raises(EndpointError, match="not as numbers that can be true"):
                Endpoint(EndpointConfig(url=server.url, model=MODEL), limited).complete(TURN)
            assert limited.tokens > 512
            done = Endpoint(EndpointConfig(url=server.url, model=MODEL, **PRICES), free).complete(TURN)
            assert (done.uncounted, done.prompt_tokens, done.reply_tokens) == (1, 0, 0)
            assert done.cost == free.money > 512 * 4.0 / 1e6

        check()


@pytest.mark.parametrize(("first", "growth", "limit"), [(100, 100, 3000), (1, 50, 2000), (700, 0, 5000)])
def test_a_use_that_grows_stays_within_the_limit(first, growth, limit):
    """A use that grew with every call passed the limit by half."""
    count = iter(range(1000))
    with ModelServer(lambda _: reply("fine", tokens=(first + growth * next(count), 1))) as server:
        budget = Budget(BudgetConfig(tokens=limit))
        one = Endpoint(EndpointConfig(url=server.url, model=MODEL), budget)
        with pytest.raises(BudgetSpentError, match="tokens"):
            while True:
                one.complete(TURN)
        assert 0 < budget.tokens <= limit


@pytest.mark.parametrize(
    "body",
    [b'{"a":' * 100_000 + b"1" + b"}" * 100_000, b"[" * 4_000_000, b'{"choices":' + b"[" * 10**6, b'"' + b"\\" * 10**6],
    ids=["deep", "open lists", "deep choices", "backslashes"],
)
def test_a_hostile_body_is_an_attempt_that_failed(body):
    with ModelServer(lambda _: body) as server:
        started = time.monotonic()
        with pytest.raises((UnansweredError, EndpointError)) as caught:
            endpoint(server, attempts=2).complete(TURN)
        assert str(caught.value).isprintable()
        assert time.monotonic() - started < 3.0


def test_numbers_that_json_cannot_hold_reach_the_label_as_text():
    body = json.dumps(reply("True", top={"True": -0.1, "It": float("-inf")})).encode()
    with ModelServer(lambda _: body) as server:
        done = endpoint(server).complete(Turn(("True?",), choices=("True", "False")))
    assert done.first_token == (("True", -0.1), ("It", float("-inf")))
