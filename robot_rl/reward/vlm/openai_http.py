"""The refusals of OpenAI-compatible servers: the cure for each, and the time of the next attempt.

Servers describe the same problem differently; here are the phrases by which it is recognised.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit

import numpy as np
import urllib3
from urllib3.exceptions import InvalidHeader

from robot_rl.config.labelling import EndpointConfig
from robot_rl.system.printable import one_line

_CURES = (
    (("logprob",), "it gives no log-probabilities; use answer=structured"),
    (("response_format", "json_schema", "guided", "grammar"), "it cannot be held to a form; lower endpoint.structured "
     "from json_schema to json_object or none"),
    (("mmproj", "image", "multimodal", "vision"), "it takes no images like these; choose a model that sees, and start "
     "the server with its image part (llama.cpp: --mmproj)"),
    (("context length", "maximum context", "context size", "too many tokens", "too long"),
     "the request is too long for it; lower frames.count or frames.longest_side"),
    (("max_tokens",), "it does not accept endpoint.max_reply_tokens; change it"),
    (("temperature",), "it does not accept endpoint.temperature; change it"),
)  # fmt: skip
"""Phrases in a refusal, and its cure."""


def explain_refusal(status: int, location: str, body: str, config: EndpointConfig, key_is_set: bool) -> str:
    """Return a sentence about a refusal, with its cure.

    Args:
        status: HTTP status code.
        location: To which the reply refers, without secrets; empty if to none.
        body: Of the reply, without secrets.
        config: Settings of the request.
        key_is_set: Whether a key was sent.
    """
    message = message_of(body)
    if status in (401, 403):
        state = "the key in it is not accepted" if key_is_set else "it is not set"
        return f"HTTP {status}: wants a key from the environment variable {config.key_variable}; {state} ({message})"
    if 300 <= status < 400:
        return f"HTTP {status}: moved to {_place(location)}; set endpoint.url to where it is now"
    if status == 404:
        what = f"model {config.model!r}, or no OpenAI-compatible interface at this address"
        return f"HTTP 404: no {what}; check endpoint.model, and that endpoint.url ends in /v1 ({message})"
    if status == 402:
        return f"HTTP 402: the account has no credit ({message})"
    if status == 413:
        return f"HTTP 413: the request is too large; lower frames.count or frames.longest_side ({message})"
    low = body.lower()
    for phrases, cure in _CURES:
        if any(phrase in low for phrase in phrases):
            return f"HTTP {status}: {cure} ({message})"
    return f"HTTP {status}: {message}"


def is_permanent(body: str) -> bool:
    """Return whether a server error will come again: llama.cpp replies 500 to requests that a model cannot serve."""
    return "not supported" in body.lower()


def message_of(body: str) -> str:
    """Return the message in the body of an error, cut short."""
    text = body
    try:
        tree = json.loads(body)
        error = tree.get("error", tree) if isinstance(tree, dict) else tree
        found = error.get("message", error.get("detail")) if isinstance(error, dict) else error
        text = str(found if found is not None else body)
    except (ValueError, RecursionError):
        pass  # it is no JSON that can be read: the body is the message
    return one_line(text) or "(no message)"


def _place(location: str) -> str:
    """Return an address without what may be a secret in it: user, password, query and fragment."""
    try:
        parts = urlsplit(location)
        place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else parts.path
    except ValueError:
        place = ""
    return one_line(place) or "(unknown)"


TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP status codes after which another attempt may succeed."""
LONGEST_WAIT = 60.0
"""Limit of a wait that the server did not request [s]."""
_LONGEST_RETRY_AFTER = 64  # characters; a date has 29


def requested_wait(retry_after: str | None) -> float | None:
    """Return the seconds that a server requests in `Retry-After`, a number or a date; None if it requests none."""
    if retry_after is None:
        return None
    try:
        seconds = urllib3.Retry().parse_retry_after(retry_after[:_LONGEST_RETRY_AFTER])
    except (InvalidHeader, ValueError, OverflowError):
        return None
    return max(0.0, float(seconds))


def random_wait(attempt: int, backoff: float, rng: np.random.Generator) -> float:
    """Return the seconds to wait after the failed attempt number `attempt`, from 1, if the server requests no wait.

    They are "full jitter": uniform in [0, min(60, backoff 2^(attempt - 1))].

    Args:
        attempt: Which attempt failed.
        backoff: Longest wait after the first [s].
        rng: Source of the jitter.
    """
    return float(rng.uniform(0.0, min(LONGEST_WAIT, backoff * 2.0 ** min(attempt - 1, 60))))
