"""What a server's refusal means, and how to cure it. Servers word the same thing differently; this knows the words."""

from __future__ import annotations

import json
from collections.abc import Mapping

from robot_rl.config.labelling import EndpointConfig

LONGEST_MESSAGE = 300
"""Characters of the server's own words that are passed on."""

_CURES = (
    (("logprob",), "it gives no log-probabilities; use answer=structured"),
    (("response_format", "json_schema", "guided", "grammar"), "it cannot be held to a form; lower endpoint.structured "
     "from json_schema to json_object or none"),
    (("mmproj", "image", "multimodal", "vision"), "it takes no images like these; choose a model that sees, and start "
     "the server with its image part (llama.cpp: --mmproj)"),
    (("context length", "maximum context", "context size", "too many tokens", "too long"),
     "the question is too long for it; lower frames.count or frames.longest_side"),
    (("max_tokens",), "it does not accept endpoint.max_reply_tokens; change it"),
    (("temperature",), "it does not accept endpoint.temperature; change it"),
)  # fmt: skip
"""Words in a refusal of a request, and what it means."""


def explain(status: int, headers: Mapping[str, str], body: str, config: EndpointConfig, key_is_set: bool) -> str:
    """The refusal in a sentence, with its cure.

    Args:
        status: HTTP status code.
        headers: Of the reply.
        body: Of the reply, without secrets.
        config: How the server was asked.
        key_is_set: Whether a key was sent.
    """
    said = words_of(body)
    if status in (401, 403):
        state = "the key in it is not accepted" if key_is_set else "it is not set"
        return f"HTTP {status}: wants a key from the environment variable {config.key_variable}; {state} ({said})"
    if 300 <= status < 400:
        return f"HTTP {status}: moved to {headers.get('Location', '(unknown)')}; set endpoint.url to where it is now"
    if status == 404:
        what = f"model {config.model!r}, or no OpenAI-compatible interface at this address"
        return f"HTTP 404: no {what}; check endpoint.model, and that endpoint.url ends in /v1 ({said})"
    if status == 402:
        return f"HTTP 402: the account has no credit ({said})"
    if status == 413:
        return f"HTTP 413: the question is too large; lower frames.count or frames.longest_side ({said})"
    low = body.lower()
    for words, cure in _CURES:
        if any(word in low for word in words):
            return f"HTTP {status}: {cure} ({said})"
    return f"HTTP {status}: {said}"


def is_for_good(body: str) -> bool:
    """Whether a server error will come again, whenever it is asked: llama.cpp says 500 to what a model cannot do."""
    return "not supported" in body.lower()


def words_of(body: str) -> str:
    """The server's own words, cut short."""
    text = body
    try:
        tree = json.loads(body)
        error = tree.get("error", tree) if isinstance(tree, dict) else tree
        found = error.get("message", error.get("detail")) if isinstance(error, dict) else error
        text = str(found if found is not None else body)
    except ValueError:
        pass  # its words as they are
    text = " ".join(text.split()) or "(no words)"
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}..."
