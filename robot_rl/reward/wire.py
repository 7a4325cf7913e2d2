"""Reads the replies of OpenAI-compatible servers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from robot_rl.errors import EndpointError
from robot_rl.reward.completion import Completion


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


class _Message(_Lenient):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Lenient):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Usage(_Lenient):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Reply(_Lenient):
    choices: list[_Choice]
    usage: _Usage | None = None


class _Model(_Lenient):
    id: str


class _Models(_Lenient):
    data: list[_Model]


def read_models(body: bytes) -> list[str]:
    """Names of the models that a server lists.

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
    """What a server said, None if the reply is cut short or is no JSON, which another attempt may mend.

    Raises:
        EndpointError: if it is JSON of another form, or lacks the log-probabilities that were asked for.
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
            "the server gave no log-probabilities though asked for them; use answer=structured, or a server that does "
            "(vLLM, llama.cpp)"
        )
    return Completion(
        text=choice.message.refusal or choice.message.content or "",
        refused=refused,
        cut=choice.finish_reason == "length",
        first_token=tuple((c.token, c.logprob) for c in tokens[0].top_logprobs) if tokens else (),
        prompt_tokens=usage.prompt_tokens,
        reply_tokens=usage.completion_tokens,
    )
