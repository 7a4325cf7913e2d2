"""Two labellers of success, one after the other: a cheap one first, and the other only where that one is unsure.

A cascade of classifiers (Viola and Jones 2001; of language models: FrugalGPT, Chen 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.config.labelling import CascadeConfig
from robot_rl.config.reward import BudgetConfig
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.backend import Backend
from robot_rl.reward.budget import Budget
from robot_rl.reward.query import Query, QueryKind


class CascadeBackend:
    """Answers queries about success.

    Args:
        first: Its answers need no request and cost nothing.
        second: Answers where `first` gives no value, or an unsure one.
        sure: Probability of success, or of failure, from which on the answer of `first` stands.
    """

    def __init__(self, first: Backend, second: Backend, sure: float) -> None:
        self._first, self._second, self._sure = first, second, sure

    @property
    def identity(self) -> Mapping[str, Any]:
        """Both labellers, where one hands over to the other, and the episodes that they were trained on."""
        first, second = self._first.identity, self._second.identity
        trained_on = sorted({*first.get("trained_on", ()), *second.get("trained_on", ())})
        return {
            "backend": "cascade",
            "model": f"{first['model']}, then {second['model']}",
            "sure": self._sure,
            "first": dict(first),
            "second": dict(second),
            "trained_on": trained_on,
        }

    @property
    def concurrency(self) -> int:
        """As many queries as the second can process."""
        return self._second.concurrency

    def answer(self, query: Query) -> Answer:
        """Return the answer of the first, with 0 requests, if it is sure; otherwise that of the second."""
        first = self._first.answer(query)
        if first.status is Status.OK and max(first.values[0], 1.0 - first.values[0]) >= self._sure:
            return replace(first, attempts=0, details={**first.details, "answered_by": "first"})
        second = self._second.answer(query)
        details = {**second.details, "answered_by": "second", "first": list(first.values)}
        return replace(second, details=details, cost=first.cost + second.cost, latency=first.latency + second.latency)

    def close(self) -> None:
        """Close both."""
        self._first.close()
        self._second.close()


def head_first(config: CascadeConfig, make_second: Callable[[], Backend]) -> CascadeBackend:
    """Return a cascade of a head for success, and of another labeller, which is made after the head was read.

    Raises:
        DataError: if there is no head.
        ConfigError: if it is one for labels of another kind.
    """
    from robot_rl.reward.vlm.head_backend import HeadBackend  # here, as torch takes seconds to import

    first = HeadBackend(Path(config.head), QueryKind.SUCCESS, Budget(BudgetConfig()))  # the budget is for the other one
    return CascadeBackend(first, make_second(), config.sure)
