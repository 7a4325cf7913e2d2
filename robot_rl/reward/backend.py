"""The backend of a labeller: a server, a local model, a head trained on the user's own episodes, or code of yours."""

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
        """Largest number of queries at the same time."""
        ...

    def answer(self, query: Query) -> Answer:
        """Answer a query; the status of the answer may be that there are no values.

        Raises:
            UnansweredError: if this query cannot be answered now, but perhaps later.
            BudgetSpentError: if the query would cost more than is left.
            RobotRLError: if no query can be answered; the message has the cure.
        """
        ...

    def close(self) -> None:
        """Release connections and memory, and end waits of other threads; may be called twice."""
        ...
