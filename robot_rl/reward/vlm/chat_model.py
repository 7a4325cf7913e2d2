"""The interface of a vision-language model: text and images in, text and its probabilities out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

Part = str | np.ndarray
"""Text, or an image: uint8, shape (height, width, 3)."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A prompt.

    Attributes:
        parts: Text and images in their order.
        schema: JSON schema that the reply must keep to, if the model can be constrained to one.
        choices: Tokens to choose from; then the log-probabilities of the first token are wanted.
    """

    parts: tuple[Part, ...]
    schema: Mapping[str, Any] | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Completion:
    """The reply of a model.

    Attributes:
        text: The text.
        refused: Whether it, or a filter, declined.
        cut: Whether it ran into the limit on the length of its reply.
        first_token: Log-probabilities of the most probable first tokens; empty if none were requested.
        prompt_tokens: As counted by the server.
        reply_tokens: As counted by the server.
        cost: By the configured prices, of all attempts; those in `uncounted` at the most that they may have cost.
        latency: From the first attempt to the answer [s].
        attempts: Requests that it took.
        uncounted: Those of them whose tokens the server did not count, though it may bill them.
        served_by: Model and system fingerprint as the reply names them, and the weights behind the name as the server
            states them; empty if they do not.
    """

    text: str
    refused: bool = False
    cut: bool = False
    first_token: tuple[tuple[str, float], ...] = ()
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: float = 0.0
    latency: float = 0.0
    attempts: int = 1
    uncounted: int = 0
    served_by: Mapping[str, str] = field(default_factory=dict)


class ChatModel(Protocol):
    """A model that replies to turns; safe to use from several threads."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that a completion depends on besides the turn; JSON values, no secrets."""
        ...

    @property
    def concurrency(self) -> int:
        """Turns that it can process at the same time."""
        ...

    def complete(self, turn: Turn) -> Completion:
        """Return the reply; raises as `Backend.answer`."""
        ...

    def close(self) -> None:
        """Release connections and memory, and end waits; see `Backend.close`."""
        ...
