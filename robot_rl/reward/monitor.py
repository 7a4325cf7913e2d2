"""Notices that a labeller begins to reward failures: what a policy does that has learned to please it.

It knows what was labelled and what was true, as far as somebody knows; it does not know how either came about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

EXPECTED, INTOLERABLE = 0.02, 0.10
"""Share of failures that a good labeller calls a success, and one that ruins learning."""
LIMIT = 7.0
"""A good labeller raises an alarm in e^7 = 1,100 failures at most once on average (Lorden 1971), a ruinous one after
some 80."""


@dataclass(frozen=True)
class Alarm:
    """Reward hacking, most probably.

    Attributes:
        failures: Failures that were judged since the last alarm, or the start.
        rewarded: How many of them were called a success.
    """

    failures: int
    rewarded: int

    def __str__(self) -> str:
        """In words, with what to do."""
        return (
            f"the labeller calls failures a success: {self.rewarded} of the last {self.failures} failures; "
            "stop learning from it, look at these episodes, and calibrate it anew with them"
        )


class HackMonitor:
    """Cumulative sum test (Page 1954) on failures: S <- max(0, S + log p_bad(x) / p_good(x)), an alarm where S > 7."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._failures = self._rewarded = 0
        self.judged = 0
        """Episodes of which both is known."""
        self.alarms = 0

    def add(self, labelled: bool, succeeded: bool) -> Alarm | None:
        """Takes an episode; an alarm if this is one too many.

        Args:
            labelled: Whether the label calls it a success.
            succeeded: Whether it is one, by a person or the environment.
        """
        self.judged += 1
        if succeeded:
            return None
        self._failures += 1
        self._rewarded += labelled
        if labelled:
            self._sum += math.log(INTOLERABLE / EXPECTED)
        else:
            self._sum = max(0.0, self._sum + math.log((1 - INTOLERABLE) / (1 - EXPECTED)))
        if self._sum <= LIMIT:
            return None
        alarm = Alarm(self._failures, self._rewarded)
        self._sum, self._failures, self._rewarded = 0.0, 0, 0
        self.alarms += 1
        return alarm
