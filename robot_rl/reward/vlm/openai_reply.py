"""The replies of OpenAI-compatible servers: their parsing, and what a request may use and did use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from robot_rl.errors import EndpointError, RobotRLError
from robot_rl.reward.vlm.chat_model import Completion, Turn
from robot_rl.system.printable import one_line

_MOST_TOKENS = 10**12  # more in one request is no count
_PATCH = 14  # side of the finest patches that models in use make a token of [px]
_TEMPLATE = 256  # tokens that the template of a chat may add


class Use(NamedTuple):
    """Tokens of a request.

    Attributes:
        prompt: Of the prompt.
        reply: Of the reply.
    """

    prompt: int
    reply: int

    @property
    def tokens(self) -> int:
        """Of both."""
        return self.prompt + self.reply


class UnreadableReplyError(RobotRLError):
    """A reply of status 200 is no JSON, or cut off; another attempt may mend that."""


class _Lenient(BaseModel):
    """Servers add fields of their own."""

    model_config = ConfigDict(extra="ignore")


class _Candidate(_Lenient):
    token: Annotated[str, Field(max_length=1000)]
    logprob: float | None


class _Token(_Candidate):
    top_logprobs: Annotated[list[_Candidate], Field(max_length=1000)] = []


class _Logprobs(_Lenient):
    content: Annotated[list[_Token], Field(max_length=10_000)] | None = None


class _ReplyMessage(_Lenient):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Lenient):
    message: _ReplyMessage
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(_Lenient):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None


class _Reply(_Lenient):
    choices: Annotated[list[_Choice], Field(max_length=100)]
    usage: _Usage | None = None
    model: str | None = None
    system_fingerprint: str | None = None


class _ListedModel(_Lenient):
    id: str
    root: str | None = None


class _Models(_Lenient):
    data: Annotated[list[_ListedModel], Field(max_length=10_000)]


class _TaggedModel(_Lenient):
    name: str
    digest: str


class _Tags(_Lenient):
    models: Annotated[list[_TaggedModel], Field(max_length=10_000)]


def read_models(body: bytes) -> dict[str, str]:
    """Return the models in a server's list: of each name the weights behind it (vLLM: `root`), empty if not stated.

    Raises:
        EndpointError: if it is no such list.
    """
    try:
        return {model.id: one_line(model.root or "") for model in _Models.model_validate_json(body).data}
    except ValidationError as error:
        raise EndpointError(
            "the server's list of models is not as OpenAI-compatible servers write it; check that endpoint.url ends in "
            "/v1"
        ) from error


def read_digest(body: bytes, model: str) -> str:
    """Return the hash of a model in Ollama's list `/api/tags`; empty if this is no such list, or has not the model."""
    try:
        tags = _Tags.model_validate_json(body).models
    except ValidationError:
        return ""
    return next((one_line(tag.digest) for tag in tags if tag.name == model), "")


def read_completion(body: bytes, wants_logprobs: bool) -> Completion:
    """Parse a reply. Its tokens are `uncounted` if it does not state a use that can be true.

    Raises:
        UnreadableReplyError: if it is cut off, or no JSON.
        EndpointError: if it is JSON of another form, or lacks the requested log-probabilities.
    """
    try:
        reply = _Reply.model_validate_json(body)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if problem["type"] == "json_invalid":
            raise UnreadableReplyError("the reply was cut off or is no JSON") from error
        raise EndpointError(
            f"the reply is not as OpenAI-compatible servers write it ({error.error_count()} problems, the first at "
            f"{'.'.join(map(str, problem['loc']))}); check endpoint.url; it begins: {_start(body)}"
        ) from error
    if not reply.choices:
        raise EndpointError(
            "the reply holds no choices; check that the server generates text from this model; it begins: "
            f"{_start(body)}"
        )
    choice, use = reply.choices[0], _use(reply.usage or _Usage())
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
        first_token=tuple(_candidate(c) for c in tokens[0].top_logprobs) if tokens else (),
        prompt_tokens=use.prompt if use else 0,
        reply_tokens=use.reply if use else 0,
        uncounted=int(use is None),
        served_by=_served_by(reply),
    )


def most_used(turn: Turn, payload: Mapping[str, Any]) -> Use:
    """Return an upper estimate of the tokens that a request may use.

    A token is at least one byte of text; an image gives at most a token for each patch of 14 x 14 px. Servers that
    count images by tiles of their own may exceed that: then the use that they report decides, see `Budget`.

    Args:
        turn: The prompt.
        payload: Of the request, which has the form of the answer and its limit `max_tokens`.
    """
    text = sum(len(part.encode()) for part in turn.parts if isinstance(part, str))
    form = len(json.dumps(payload.get("response_format", {})))
    patches = sum(
        -(-part.shape[0] // _PATCH) * -(-part.shape[1] // _PATCH) for part in turn.parts if not isinstance(part, str)
    )
    return Use(_TEMPLATE + text + form + patches, int(payload["max_tokens"]))


def _use(usage: _Usage) -> Use | None:
    """Return the reported use, or None if it cannot be true. Nobody generates without a prompt."""
    prompt, reply = usage.prompt_tokens or 0.0, usage.completion_tokens or 0.0
    possible = all(0 <= count <= _MOST_TOKENS and count == int(count) for count in (prompt, reply))
    return Use(int(prompt), int(reply)) if possible and prompt else None


def _candidate(found: _Candidate) -> tuple[str, float]:
    return found.token, float("nan") if found.logprob is None else found.logprob


def _served_by(reply: _Reply) -> dict[str, str]:
    named = {"model": reply.model, "system_fingerprint": reply.system_fingerprint}
    return {key: one_line(value) for key, value in named.items() if value}


def _start(body: bytes) -> str:
    return one_line(body[:2000].decode(errors="replace"))
