"""Replies made by hypothesis that lie about everything: each is a label, a refusal with a reason, or a stop.

Whatever the server does, it takes no more time and memory than allowed and costs no more than the budget. The key that
it repeats reaches neither the disk nor the screen.
"""

import functools
import gzip
import json
import logging
import re
import resource
import time
import zlib
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_server import KEY_VARIABLE, MODEL
from raw_server import RawServer, bytewise, zipped_zeros

from robot_rl.config.labelling import BudgetConfig, EndpointConfig
from robot_rl.errors import RobotRLError
from robot_rl.reward.answer import Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.query import Clip, Query, QueryKind
from robot_rl.reward.vlm.chat_backend import ChatBackend
from robot_rl.reward.vlm.openai_client import Endpoint
from robot_rl.reward.vlm.prompts import choose_prompt

KEY = "sk-Liar/0123456789+=="
TIMEOUT = 1.0
MEMORY = 500 * 2**10  # [KiB]
LIMIT = 5000  # tokens
MANY = 10**7  # tokens, more than any request may use, but a number that a server may state
QUERY = Query(QueryKind.SUCCESS, "push it", (Clip("e", "f", "front", (0,), np.zeros((1, 32, 32, 3), np.uint8)),))


@dataclass(frozen=True)
class Lie:
    """A reply, and how it is sent.

    Attributes:
        body: Before it is encoded.
        pieces: What the server sends, one each `pause` seconds.
        pause: Between the pieces [s].
        hangs_up: Whether the server closes the connection then.
    """

    body: bytes
    pieces: tuple[bytes, ...]
    pause: float
    hangs_up: bool


def escaped(text):
    return "".join(f"\\u{ord(character):04x}" for character in text)


def mostly(usual, *odd):
    """Nine times of ten what is usual, so that a reply has a few lies and not all of them."""
    return st.sampled_from([usual] * 9 * len(odd) + list(odd))


@st.composite
def texts(draw):
    """What the model wrote."""
    form = {
        "seen": draw(mostly("a peg", KEY, "\x1b[2J", "\ud800", "\0")),
        "verdict": draw(mostly("success", "failure", "unsure", "SUCCESS", 1, KEY)),
        "confidence": draw(mostly(90, 0, 100.0, 101, -1, float("nan"), float("inf"), 10**400, "90", None)),
    }
    right = json.dumps(form)
    hostile = [KEY, escaped(KEY), json.dumps(escaped(KEY)), "{" * 300_000, '{"seen":' + "[" * 60_000, "x" * 10**6]
    odd = [f"It is {right}", right[:-3], right * 2, "<think>" * 1000, '{"\x1b[31m\ud800": 1}', "{}" * 1000, "1" * 5000]
    return draw(mostly(right, *hostile, *odd, draw(st.text(max_size=40)), None))


TOKENS = st.sampled_from(["True", "False", " true", "It", KEY, "\ud800", "", "x" * 2000])
LOGS = st.sampled_from([0.0, -0.1, -9999.0, -3.4e38, float("-inf"), float("nan"), 1000.0, None, "x"]) | st.floats()
CANDIDATES = st.lists(st.fixed_dictionaries({"token": TOKENS, "logprob": LOGS}), max_size=4)
COUNTS = mostly(100, 0, 1, -1, -(10**9), 0.5, 1e300, float("nan"), MANY, 10**400, "7", "x", [], None)


@st.composite
def bodies(draw):
    """The body of the reply, before it is packed."""
    usual = [{"token": "True", "logprob": -0.1}, {"token": "False", "logprob": -2.5}]
    token = {**usual[0], "top_logprobs": draw(st.just(usual) | CANDIDATES)}
    choice = {
        "message": {"content": draw(texts()), "refusal": draw(mostly(None, KEY, 7))},
        "finish_reason": draw(mostly("stop", "length", "content_filter", KEY, 7)),
        "logprobs": draw(mostly({"content": [token]}, {"content": []}, None, "x")),
    }
    envelope = {
        "choices": draw(mostly([choice], [choice] * 200, [], None, {})),
        "usage": draw(mostly({"prompt_tokens": draw(COUNTS), "completion_tokens": draw(COUNTS)}, None, 7)),
        "model": draw(mostly(MODEL, KEY, "\x1b[2J", "m" * 10**5, None, 7)),
        "system_fingerprint": draw(mostly("fp", KEY, None)),
    }
    del envelope[draw(mostly("system_fingerprint", "choices", "usage", "model"))]
    body = json.dumps(envelope, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    odd = [body[:-5], body + b"}", b"", b"null", b"<html>" + KEY.encode(), KEY.encode(), draw(st.binary(max_size=60))]
    return draw(mostly(body, *odd, b"[" * 3 * 10**6, b'{"a":' * 10**5, b'"' + b"\\" * 10**6, b" " * 5 * 10**6))


@functools.cache
def bomb(layers):
    return zipped_zeros(10**8, layers)


def packed(body, how):
    """The body as it is sent, and the header that states how."""
    match how:
        case "gzip" | "deflate":
            return (gzip.compress if how == "gzip" else zlib.compress)(body, 1), how
        case "bomb":
            return bomb(1), "gzip"
        case "bomb in a bomb":
            return bomb(2), "gzip, gzip"
        case "many layers":
            return body, "gzip," * 40 + "gzip"
        case _:
            return body, how


@st.composite
def lies(draw):
    body = draw(bodies())
    how = draw(mostly("", "gzip", "deflate", "bomb", "bomb in a bomb", "many layers", "br", KEY))
    content, encoding = packed(body, how)
    size = len(content)
    length = draw(
        mostly(f"{size}", f"{size + 5}", f"{max(0, size - 3)}", f"{10**18}", "-1", "x", "1, 2", "", "chunked")
    )
    framing = [f"Content-Length: {length}"] if length else []
    if length == "chunked":
        framing = ["Transfer-Encoding: chunked"]
        chunk = draw(mostly(f"{size:x}", f"{size + 9:x}", "-5", "x" * 9999, "f" * 40, KEY))
        content = chunk.encode() + b"\r\n" + content + b"\r\n0\r\n\r\n"
    codes = [100, 204, 302, 307, 400, 401, 404, 418, 429, 500, 503, 999]
    broken = ["HTTP/1.1 -1 x", "HTTP/9 200 OK", "\0", f"HTTP/1.1 500 {KEY}", KEY]
    status = draw(mostly("HTTP/1.1 200 OK", *[f"HTTP/1.1 {code} x" for code in codes], *broken))
    waits = [f"Retry-After: {wait}" for wait in ("0", "9", "3600", "-1", "nan", "9" * 5000, KEY)]
    places = [f"Location: http://{place}" for place in (f"u:{KEY}@x/", f"x/{KEY}?k={KEY}", "\x1b[2J", "[")]
    odd = ["X: " + "x" * 70_000, "\r\n".join(["X: y"] * 200), "X" * 100, "\xff: \xff", "Connection: close"]
    more = draw(mostly([], *[[one] for one in waits + places + odd]))
    packing = [f"Content-Encoding: {encoding}"] if encoding else []
    head = "\r\n".join([status, *more, *packing, *framing, "", ""]).encode("latin-1")
    pace = draw(st.sampled_from(["at once"] * 60 + ["drip", "drip", "stall"]))
    if pace == "drip":
        return Lie(body, tuple(bytewise((head + content)[:400])), 0.05, True)
    if pace == "stall":
        return Lie(body, (head[: draw(st.integers(0, len(head)))],), 0.0, False)
    return Lie(body, (head, content), 0.0, True)


def unescaped(content):
    """The content without the escapes that could hide a key from a search, however many layers of JSON it is in."""
    plain = re.sub(rb"\\+u00([0-9a-fA-F]{2})", lambda found: bytes([int(found[1], 16)]), content)
    return plain.replace(b"\\", b"")


@pytest.mark.slow
def test_two_hundred_lies_are_labels_refusals_or_stops_within_all_limits(tmp_path, monkeypatch, caplog, capfd):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    caplog.set_level(logging.WARNING)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    messages, outcomes, count = [], {"label": 0, "refused": 0}, iter(range(10**6))

    with RawServer([]) as server, LabelStore(tmp_path, create=True) as labels:
        labels.begin("lies", QueryKind.SUCCESS, {}, {})

        def query(manner, limits):
            """Return what became of the lie that the server tells now; no error that is not ours passes."""
            config = EndpointConfig(
                url=server.url, model=MODEL, key_variable=KEY_VARIABLE, timeout_s=TIMEOUT, attempts=2, backoff_s=0.001,
                longest_wait_s=0.05, price_prompt=1.0, price_reply=1.0,
            )  # fmt: skip
            budget, before, started = Budget(limits), server.requests, time.monotonic()
            backend = ChatBackend(Endpoint(config, budget), choose_prompt(QueryKind.SUCCESS, manner, ""), manner, 32)
            try:
                answer = backend.answer(QUERY)
            except RobotRLError as error:
                answer = None
                messages.append(str(error))
            finally:
                backend.close()
            return answer, budget, server.requests - before, time.monotonic() - started

        @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(
            lies(), st.sampled_from(["structured", "logprobs"]), st.sampled_from([0, 1]), st.sampled_from([0, LIMIT])
        )
        def check(lie, manner, calls, tokens):
            server.pieces, server.pause, server.hangs_up = lie.pieces, lie.pause, lie.hangs_up
            limits = BudgetConfig(calls=calls, tokens=tokens)
            for _ in range(3):  # the machine may be busy, so once is not believed
                answer, budget, requests, seconds = query(manner, limits)
                if seconds <= 1.5 * TIMEOUT * max(1, requests):
                    break
            assert seconds <= 1.5 * TIMEOUT * max(1, requests)
            assert requests <= min(2, calls or 2)
            claimed = re.search(rb'_tokens": %d\b' % MANY, lie.body)
            assert budget.tokens >= 0
            assert budget.tokens <= LIMIT or not tokens or (claimed and requests == 1)
            if answer is None:
                outcomes["refused"] += 1
                assert messages[-1]
                assert messages[-1].isprintable()
                assert len(messages[-1]) < 1000
                return
            outcomes["label"] += 1
            assert all(0.0 <= value <= 1.0 for value in answer.values)
            assert bool(answer.values) == (answer.status is Status.OK)
            if answer.status is Status.OK and manner == "structured":
                assert re.search(r'\\*"verdict\\*": \\*"(success|failure)', lie.body.decode(errors="replace"))
            number = next(count)
            labels.add("lies", str([number]), str(number), answer, {})

        check()
        assert outcomes["label"] >= 20
        assert outcomes["refused"] >= 20
        assert len(list(labels.labels("lies"))) == outcomes["label"]

    out, err = capfd.readouterr()
    shown = "\n".join([*messages, caplog.text, out, err]).encode("utf-8", "surrogatepass")
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for content in (shown, stored):
        assert b"Liar" not in unescaped(content)
        assert b"Traceback" not in content
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < MEMORY - 200 * 2**10
