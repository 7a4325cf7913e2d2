"""What came back: values if there are any, and always the words, what they cost and how long they took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How an answer was read.

    OK: it has values. UNSURE: the model said that it cannot tell. UNPARSABLE: it did not keep to the form. REFUSED: it
    declined to answer, or the server's filter did.
    """

    OK = "ok"
    UNSURE = "unsure"
    UNPARSABLE = "unparsable"
    REFUSED = "refused"


@dataclass(frozen=True)
class Answer:
    """One answer. Only one that was understood has values: what cannot be read is never a reward.

    Attributes:
        status: How it was read.
        values: As `QueryKind` defines; empty unless `status` is OK.
        raw: The model's own words.
        details: More of it, e.g. log-probabilities, or why it could not be read; JSON values.
        prompt_tokens: Of the question, as the server counted.
        reply_tokens: Of the answer.
        cost: By the prices that were configured.
        latency: From the first attempt to the answer [s].
        attempts: Requests that it took.
    """

    status: Status
    values: tuple[float, ...] = ()
    raw: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: float = 0.0
    latency: float = 0.0
    attempts: int = 1

    def __post_init__(self) -> None:
        """Checks that values and status agree.

        Raises:
            ValueError: if they do not.
        """
        if bool(self.values) != (self.status is Status.OK):
            raise ValueError(f"an answer that is {self.status} with values {self.values}")
