"""The replies of OpenAI-compatible servers: parsing, the cure for each refusal, and the time of the next attempt.

Servers describe the same problem differently; here are the phrases by which it is recognised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import urllib3
from pydantic import BaseModel, ConfigDict, ValidationError
from urllib3.exceptions import InvalidHeader

from robot_rl.config.labelling import EndpointConfig
from robot_rl.errors import EndpointError
from robot_rl.reward.vlm.chat_model import Completion

LONGEST_MESSAGE = 300
"""Characters of a server's message that are passed on."""

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


def explain_refusal(
    status: int, headers: Mapping[str, str], body: str, config: EndpointConfig, key_is_set: bool
) -> str:
    """Return a sentence about a refusal, with its cure.

    Args:
        status: HTTP status code.
        headers: Of the reply.
        body: Of the reply, without secrets.
        config: Settings of the request.
        key_is_set: Whether a key was sent.
    """
    message = message_of(body)
    if status in (401, 403):
        state = "the key in it is not accepted" if key_is_set else "it is not set"
        return f"HTTP {status}: wants a key from the environment variable {config.key_variable}; {state} ({message})"
    if 300 <= status < 400:
        return f"HTTP {status}: moved to {headers.get('Location', '(unknown)')}; set endpoint.url to where it is now"
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
    except ValueError:
        pass  # it is no JSON: the body is the message
    text = " ".join(text.split()) or "(no message)"
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."


TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP status codes after which another attempt may succeed."""
LONGEST_WAIT = 60.0
"""Limit of a wait that the server did not request [s]."""


def wait_before_retry(attempt: int, backoff: float, retry_after: str | None, rng: np.random.Generator) -> float:
    """Return the seconds to wait after the failed attempt number `attempt`, from 1.

    They are the server's `Retry-After` or, without one, "full jitter": uniform in
    [0, min(60, backoff 2^(attempt - 1))].

    Args:
        attempt: Which attempt failed.
        backoff: Longest wait after the first [s].
        retry_after: Value of the header, seconds or a date; None if there was none.
        rng: Source of the jitter.
    """
    if retry_after is not None:
        try:
            return max(0.0, urllib3.Retry().parse_retry_after(retry_after))
        except InvalidHeader:
            pass  # as if it had given none
    return float(rng.uniform(0.0, min(LONGEST_WAIT, backoff * 2.0 ** (attempt - 1))))


class _Lenient(BaseModel):
    """Servers add fields of their own."""

    model_config = ConfigDict(extra="ignore")


class _Candidate(_Lenient):
    token: str
    logprob: float


class _Token(_Candidate):
    top_logprobs: list[_Candidate] = []


class _Logprobs(_Lenient):
    content: list[_Token] | None = None


class _ReplyMessage(_Lenient):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Lenient):
    message: _ReplyMessage
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(_Lenient):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Reply(_Lenient):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None
    system_fingerprint: str | None = None


class _ListedModel(_Lenient):
    id: str


class _Models(_Lenient):
    data: list[_ListedModel]


def read_models(body: bytes) -> list[str]:
    """Return the names of the models in a server's list.

    Raises:
        EndpointError: if it is no such list.
    """
    try:
        return [model.id for model in _Models.model_validate_json(body).data]
    except ValidationError as error:
        raise EndpointError(
            "the server's list of models is not as OpenAI-compatible servers write it; check that endpoint.url ends in "
            "/v1"
        ) from error


def read_completion(body: bytes, wants_logprobs: bool) -> Completion | None:
    """Parse a reply; return None if it is cut short or no JSON, which another attempt may mend.

    Raises:
        EndpointError: if it is JSON of another form, or lacks the requested log-probabilities.
    """
    try:
        reply = _Reply.model_validate_json(body)
    except ValidationError as error:
        if any(detail["type"] == "json_invalid" for detail in error.errors()):
            return None
        raise EndpointError(
            f"the reply is not as OpenAI-compatible servers write it ({error.error_count()} problems, the first at "
            f"{'.'.join(map(str, error.errors()[0]['loc']))}); check endpoint.url"
        ) from error
    if not reply.choices:
        raise EndpointError("the reply holds no choices; check that the server generates text from this model")
    choice, usage = reply.choices[0], reply.usage or _Usage()
    refused = choice.message.refusal is not None or choice.finish_reason == "content_filter"
    tokens = (choice.logprobs.content if choice.logprobs else None) or []
    if wants_logprobs and not refused and not (tokens and tokens[0].top_logprobs):
        raise EndpointError(
            "the server gave no log-probabilities, which were requested; use answer=structured, or a server that does "
            "(vLLM, llama.cpp)"
        )
    return Completion(
        text=choice.message.refusal or choice.message.content or "",
        refused=refused,
        cut=choice.finish_reason == "length",
        first_token=tuple((c.token, c.logprob) for c in tokens[0].top_logprobs) if tokens else (),
        prompt_tokens=usage.prompt_tokens,
        reply_tokens=usage.completion_tokens,
        served_by=_served_by(reply),
    )


def _served_by(reply: _Reply) -> dict[str, str]:
    told = {"model": reply.model, "system_fingerprint": reply.system_fingerprint}
    return {key: value for key, value in told.items() if value}
