"""Who answers: one interface for a server, a local model or a head trained on the user's own episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from robot_rl.reward.answer import Answer
from robot_rl.reward.query import Query


class Backend(Protocol):
    """Answers queries; `answer` may be called by several threads at a time."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that an answer depends on besides the query, so that a label remembers it; JSON values, no secrets."""
        ...

    @property
    def concurrency(self) -> int:
        """Questions that it can take at the same time."""
        ...

    def answer(self, query: Query) -> Answer:
        """The answer, or why there is none.

        Raises:
            UnansweredError: if this one could not be answered now, and may be asked again.
            BudgetSpentError: if it would cost more than is left.
            RobotRLError: if no query can be answered, with the cure.
        """
        ...

    def close(self) -> None:
        """Lets go of connections and memory, and ends waits of other threads; doing it twice is fine."""
        ...
