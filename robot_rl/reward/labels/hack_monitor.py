"""Statistics of labels of success as they come, and an alarm for reward hacking.

A labeller that begins to reward failures shows a policy that has learned to deceive it. The labels are compared with
the known outcomes, where there are any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.validation.ground_truth import known_success
from robot_rl.reward.validation.probability_calibration import Calibration, labelled_success

EXPECTED, INTOLERABLE = 0.02, 0.10
"""Share of failures that a good labeller calls a success, and one that ruins learning."""
LIMIT = 7.0
"""A good labeller raises an alarm in e^7 = 1,100 failures at most once on average (Lorden 1971), a ruinous one after
some 80."""


@dataclass(frozen=True)
class Alarm:
    """A sign of reward hacking.

    Attributes:
        failures: Failures that were labelled since the last alarm, or the start.
        rewarded: How many of them were called a success.
    """

    failures: int
    rewarded: int

    def __str__(self) -> str:
        """Return a sentence, with the cure."""
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
        """Episodes with a label and a known outcome."""
        self.alarms = 0

    def add(self, labelled: bool, succeeded: bool) -> Alarm | None:
        """Add an episode; return an alarm if this is one failure too many.

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


@dataclass
class HackWatch:
    """Statistics of the labels beside a recording.

    Attributes:
        calibration: For success; without it a probability of 0.5 is one.
        labelled: Episodes that have a label.
        statuses: Number of answers by status.
        lags: From the end of an episode's recording to its label [s], of the labels that are new.
        queried: Labels for which a query was made; the others, or their answers, were known.
        query_s: Duration of the queries [s]; added up by the caller.
        cost: Of the queries.
        called: Episodes called a success whose truth is known.
        true: Of the episodes with a label and a known truth, those that succeeded.
        monitor: Of failures that are called a success.
    """

    calibration: Calibration | None
    labelled: int = 0
    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Status), 0))
    lags: list[float] = field(default_factory=list)
    queried: int = 0
    query_s: float = 0.0
    cost: float = 0.0
    called: int = 0
    true: int = 0
    monitor: HackMonitor = field(default_factory=HackMonitor)

    def success(self, answer: Answer) -> bool | None:
        """Return whether the answer is a success; see `labelled_success`."""
        return labelled_success(answer, self.calibration)

    def add(
        self, row: EpisodeSummary, answer: Answer, lag: float | None, queried: bool, *, of_success: bool = True
    ) -> Alarm | None:
        """Add a label; return an alarm if it calls one failure too many a success.

        Args:
            row: The episode.
            answer: About it.
            lag: Of the label [s]; None if it was there before.
            queried: Whether a query was made for it.
            of_success: Whether it is a label of success.
        """
        self.labelled += 1
        self.statuses[answer.status] += 1
        if lag is not None:
            self.lags.append(lag)
        if queried:
            self.queried += 1
            self.cost += answer.cost
        truth = known_success(row)
        if not of_success or truth is None:
            return None
        called = self.success(answer) is True
        self.called += called
        self.true += truth
        return self.monitor.add(called, truth)

    def summary(self) -> dict[str, Any]:
        """Return the statistics; the hack gap is the share of successes by the labels above the true one."""
        p50, p95 = np.quantile(self.lags, [0.5, 0.95]).tolist() if self.lags else (None, None)
        judged = self.monitor.judged
        return {
            "labelled": self.labelled,
            **self.statuses,
            "judged": judged,
            "hack_gap": (self.called - self.true) / judged if judged else None,
            "alarms": self.monitor.alarms,
            "lag_p50_s": p50,
            "lag_p95_s": p95,
            "queried": self.queried,
            "cache_hits": self.labelled - self.queried,
            "labels_per_s": self.queried / self.query_s if self.query_s else None,
            "cost": self.cost,
        }
