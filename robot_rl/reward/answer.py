"""The answer to a query: its values if there are any, the reply's text, cost and latency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

OFFSET, ALONG = "offset_squared", "along_squared"
"""Details of a score against a goal g and a baseline b: |x - g|^2 of each frame x, and its part along g - b."""


class Status(StrEnum):
    """Result of parsing an answer.

    OK: it has values. UNSURE: the model reported that it cannot decide. UNPARSABLE: it did not keep to the form.
    REFUSED: the model, or the server's filter, declined to answer.
    """

    OK = "ok"
    UNSURE = "unsure"
    UNPARSABLE = "unparsable"
    REFUSED = "refused"


@dataclass(frozen=True)
class Answer:
    """One answer. It has values only if it was parsed: what cannot be parsed is never a reward.

    Attributes:
        status: Result of parsing it.
        values: As `QueryKind` defines; empty unless `status` is OK.
        raw: The reply as it came.
        details: Further facts, e.g. log-probabilities, or why it could not be parsed; JSON values.
        prompt_tokens: Of the prompt, as the server counted.
        reply_tokens: Of the reply, likewise.
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
        """Check that values and status agree.

        Raises:
            ValueError: if they disagree.
        """
        if bool(self.values) != (self.status is Status.OK):
            raise ValueError(f"an answer that is {self.status} with values {self.values}")
