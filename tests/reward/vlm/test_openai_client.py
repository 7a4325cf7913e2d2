"""The endpoint against a real server that fails as servers do."""

import json
import threading
import time

import pytest
from model_server import KEY_VARIABLE, MODEL, Fault, ModelServer, refusal, reply, stamped
from raw_server import BODY, HEAD, RawServer

from robot_rl.config.labelling import BudgetConfig, EndpointConfig
from robot_rl.errors import BudgetSpentError, EndpointError, UnansweredError
from robot_rl.reward.budget import Budget
from robot_rl.reward.vlm.chat_model import Turn
from robot_rl.reward.vlm.openai_client import Endpoint

SCHEMA = {"type": "object", "properties": {}}
TURN = Turn(("Look: ", stamped(5), " What is it?"), SCHEMA)


def endpoint(server, *, budget=None, **settings):
    settings = {"model": MODEL, "backoff_s": 0.01, "timeout_s": 5.0, "key_variable": KEY_VARIABLE} | settings
    return Endpoint(EndpointConfig(url=server.url, **settings), Budget(budget or BudgetConfig()))


def fine(request):
    del request
    return reply("fine")


def test_words_and_images_arrive_in_order_and_the_form_is_asked_for():
    with ModelServer(fine) as server:
        done = endpoint(server).complete(TURN)
    (request,) = server.requests
    kinds = [part["type"] for part in request.payload["messages"][0]["content"]]
    assert kinds == ["text", "image_url", "text"]
    assert request.words == "Look:  What is it?"
    assert request.stamps == [5]
    assert request.payload["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (done.text, done.prompt_tokens, done.reply_tokens, done.attempts) == ("fine", 100, 10, 1)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, b"{}"),
        Fault(500, b"oops"),
        Fault(503, b""),
        Fault(200, json.dumps(reply("fine")).encode()[:40]),
        Fault(silence=0.8),
    ],
    ids=["too many", "broken", "busy", "body cut off", "silent"],
)
def test_what_may_pass_is_tried_again(fault):
    with ModelServer(fine, faults=[fault]) as server:
        done = endpoint(server, timeout_s=0.4).complete(TURN)
        assert (done.text, done.attempts, len(server.requests)) == ("fine", 2, 2)


def test_retry_after_is_kept_to():
    with ModelServer(fine, faults=[refusal(429, "slow down", Retry_After="1")]) as server:
        started = time.monotonic()
        done = endpoint(server).complete(TURN)
        assert time.monotonic() - started >= 1.0
        assert done.latency >= 1.0


def test_after_all_attempts_the_question_is_left():
    with ModelServer(fine, faults=[refusal(500, "out of memory")] * 3) as server:
        with pytest.raises(UnansweredError, match=r"not answered in 3 attempts; the last: HTTP 500: out of memory"):
            endpoint(server, attempts=3).complete(TURN)
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "cure"),
    [
        (refusal(401, "bad key"), f"{KEY_VARIABLE}; it is not set"),
        (refusal(404, "no such model"), "check endpoint.model"),
        (refusal(400, "this model does not support image input, load mmproj"), "choose a model that sees"),
        (
            refusal(500, "image input is not supported - hint: you may need to provide the mmproj"),
            "choose a model that sees",
        ),
        (refusal(400, "response_format json_schema is not supported"), "lower endpoint.structured"),
        (refusal(400, "logprobs are not available"), "use answer=structured"),
        (refusal(400, "maximum context length is 2048 tokens"), "lower frames.count"),
        (refusal(402, "top up"), "no credit"),
        (refusal(413, "payload"), "lower frames.count"),
        (Fault(302, headers={"Location": "http://elsewhere/v1"}), "moved to http://elsewhere/v1"),
        (Fault(200, b'{"answer": 42}'), "not as OpenAI-compatible servers write it"),
        (Fault(200, json.dumps({"choices": []}).encode()), "no choices"),
        (Fault(418, b"<html>teapot</html>"), "HTTP 418: <html>teapot</html>"),
    ],
)
def test_what_will_not_pass_is_an_error_with_its_cure(fault, cure):
    with ModelServer(fine, faults=[fault]) as server:
        with pytest.raises(EndpointError, match=r"HTTP|OpenAI|choices") as caught:
            endpoint(server).complete(TURN)
        assert cure in str(caught.value)
        assert len(server.requests) == 1


def test_log_probabilities_are_asked_for_and_missing_ones_are_an_error():
    turn = Turn(("True or False?",), choices=("True", "False"))
    with ModelServer(lambda _: reply("True", top={"True": -0.1, "False": -2.4})) as server:
        assert endpoint(server).complete(turn).first_token == (("True", -0.1), ("False", -2.4))
        assert server.requests[0].payload["logprobs"] is True
        assert server.requests[0].payload["max_tokens"] == 1
    with (
        ModelServer(lambda _: reply("True")) as server,
        pytest.raises(EndpointError, match="no log-probabilities, which were requested"),
    ):
        endpoint(server).complete(turn)


def test_a_refusal_is_none_of_the_models_words_about_the_task():
    with ModelServer(lambda _: reply(None, refusal="I cannot look at that")) as server:
        assert endpoint(server).complete(TURN).refused
    filtered = reply("")
    filtered["choices"][0]["finish_reason"] = "content_filter"
    with ModelServer(lambda _: filtered) as server:
        assert endpoint(server).complete(TURN).refused


def test_connecting_finds_the_model():
    with ModelServer(fine) as server:
        one = endpoint(server, model="")
        assert one.connect() == [MODEL]
        assert one.identity["model"] == MODEL
        with pytest.raises(EndpointError, match="has no model 'other'; it serves: test/vision-1"):
            endpoint(server, model="other").connect()
    with ModelServer(fine, models=["a", "b"]) as server, pytest.raises(EndpointError, match="serves a, b; choose"):
        endpoint(server, model="").connect()


def test_no_server_is_an_error_with_its_cure():
    server = ModelServer(fine)
    server.close()
    with pytest.raises(EndpointError, match=r"no answer \(.*; start the server, or set endpoint.url"):
        endpoint(server).connect()


@pytest.mark.parametrize(
    "url", ["http://u:secret@host/v1", "https://host/v1?key=secret", "host/v1", "ftp://host/v1", "http://host:x/v1"]
)
def test_an_url_that_is_none_or_holds_a_secret_is_refused(url):
    with pytest.raises(EndpointError) as caught:
        Endpoint(EndpointConfig(url=url), Budget(BudgetConfig()))
    if "secret" in url:
        assert "secret" not in str(caught.value)


def test_the_key_is_sent_and_never_told(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "sk-right")
    with ModelServer(fine, key="sk-right") as server:
        one = endpoint(server)
        one.connect()
        assert one.complete(TURN).text == "fine"
        assert "sk-right" not in json.dumps(dict(one.identity))
        monkeypatch.setenv(KEY_VARIABLE, "sk-wrong")
        with pytest.raises(EndpointError, match="the key in it is not accepted") as caught:
            endpoint(server).connect()
        assert "sk-wrong" not in str(caught.value)
        assert "(key)" in str(caught.value)


def test_repeated_attempts_count_against_the_calls():
    with ModelServer(fine, faults=[Fault(500)] * 9) as server:
        with pytest.raises(BudgetSpentError, match="calls: 2 of 2 used"):
            endpoint(server, budget=BudgetConfig(calls=2)).complete(TURN)
        assert len(server.requests) == 2


def test_a_wait_beyond_the_budgets_seconds_is_not_begun():
    with ModelServer(fine, faults=[refusal(429, "later", Retry_After="3600")]) as server:
        started = time.monotonic()
        with pytest.raises(BudgetSpentError, match="seconds end before the next attempt"):
            endpoint(server, budget=BudgetConfig(seconds=60)).complete(TURN)
        assert time.monotonic() - started < 30


def test_tokens_cannot_be_limited_where_the_server_does_not_count_them():
    with (
        ModelServer(lambda _: reply("fine", tokens=(0, 0))) as server,
        pytest.raises(EndpointError, match="does not report the tokens"),
    ):
        endpoint(server, budget=BudgetConfig(tokens=1000)).complete(TURN)


def test_a_reply_that_trickles_in_does_not_exceed_the_time_of_the_attempt():
    pieces = [HEAD % len(BODY), *(BODY[i : i + 1] for i in range(len(BODY)))]
    with RawServer(pieces, 0.05) as server:
        started = time.monotonic()
        with pytest.raises(UnansweredError, match=r"not complete in time|timed out"):
            endpoint(server, timeout_s=0.5, attempts=1).complete(TURN)
        assert time.monotonic() - started < 3.0


def test_a_reply_without_an_end_is_not_read_to_it():
    endless = [HEAD % 10**12, *[b" " * 2**20] * 40]
    with RawServer(endless) as server, pytest.raises(UnansweredError, match="larger than"):
        endpoint(server, attempts=1, timeout_s=30.0).complete(TURN)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_connection_is_used_again_also_after_a_reply_in_chunks(chunked):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [head, b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)] if chunked else [HEAD % len(BODY), BODY]
    with RawServer(pieces) as server:
        one = endpoint(server)
        assert [one.complete(TURN).text for _ in range(5)] == ["fine"] * 5
        assert server.connections == 1


def test_connections_of_failed_attempts_do_not_run_out():
    with ModelServer(fine, faults=[Fault(silence=0.3)] * 6) as server:
        one = endpoint(server, timeout_s=0.1, attempts=7, concurrency=2)
        assert one.complete(TURN).attempts == 7


def test_closing_ends_a_wait():
    with ModelServer(fine, faults=[refusal(429, "later", Retry_After="200")]) as server:
        one = endpoint(server)
        failed = []

        def ask():
            try:
                one.complete(TURN)
            except UnansweredError as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        while not server.requests:
            time.sleep(0.01)
        one.close()
        thread.join(30)
        assert failed


def test_another_server_of_the_same_model_name_is_another_labeller():
    told = {**reply("fine"), "system_fingerprint": "fp_7"}
    with ModelServer(lambda _: told) as server, ModelServer(fine) as other:
        assert endpoint(server).identity["url"] == server.url
        assert endpoint(server).identity != endpoint(other).identity
        assert endpoint(server).complete(TURN).served_by == {"model": MODEL, "system_fingerprint": "fp_7"}
        assert endpoint(other).complete(TURN).served_by == {"model": MODEL}


@pytest.mark.parametrize("stated", [{"root": "/models/vision"}, {"digest": "sha256:ab"}, {}], ids=str)
def test_the_weights_behind_the_name_are_kept_with_each_answer_if_the_server_states_them(stated):
    with ModelServer(fine, **stated) as server:
        one = endpoint(server)
        before = one.identity
        one.connect()
        assert one.complete(TURN).served_by == {"model": MODEL, **stated}
        assert one.identity == before, "labels of a server that did not state them can be continued"


def test_a_name_that_cannot_be_shown_is_not_taken_from_the_server():
    with (
        ModelServer(fine, models=["evil\x1b[2J"]) as server,
        pytest.raises(EndpointError, match="choose with") as caught,
    ):
        endpoint(server, model="").connect()
    assert str(caught.value).isprintable()
