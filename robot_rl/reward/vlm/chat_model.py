"""One turn of a conversation with a model that sees: words and images in, words and their probabilities out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Part = str | np.ndarray
"""Words, or an image: uint8, shape (height, width, 3)."""


@dataclass(frozen=True, eq=False)
class Turn:
    """What is put to the model.

    Attributes:
        parts: Words and images in the order in which it sees them.
        schema: JSON schema that the reply must keep to, if the model can be held to one.
        choices: Words between which it shall decide; their log-probabilities as the first token are wanted then.
    """

    parts: tuple[Part, ...]
    schema: Mapping[str, Any] | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Completion:
    """What it said.

    Attributes:
        text: Its words.
        refused: Whether it, or a filter, declined.
        cut: Whether it ran into the limit on the length of its reply.
        first_token: Log-probabilities of the most probable first tokens; empty if none were asked for.
        prompt_tokens: As counted by the server.
        reply_tokens: As counted by the server.
        cost: By the configured prices.
        latency: From the first attempt to the answer [s].
        attempts: Requests that it took.
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


class ChatModel(Protocol):
    """A model that completes turns; several threads may ask it at a time."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that a completion depends on besides the turn; JSON values, no secrets."""
        ...

    @property
    def concurrency(self) -> int:
        """Turns that it can take at the same time."""
        ...

    def complete(self, turn: Turn) -> Completion:
        """What it says; raises as `Backend.answer`."""
        ...

    def close(self) -> None:
        """As `Backend.close`."""
        ...
