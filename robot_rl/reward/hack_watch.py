"""Compares labels of success with what is known, as they come, and sums up how they do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_rl.data.summary import EpisodeSummary
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.calibration import Calibration, says_success
from robot_rl.reward.monitor import Alarm, HackMonitor
from robot_rl.reward.truth import known_success


@dataclass
class HackWatch:
    """What came of labelling beside a recording.

    Attributes:
        calibration: For success; without it a probability of 0.5 is one.
        labelled: Episodes that have a label.
        statuses: How the answers were read.
        lags: From the end of an episode's recording to its label [s], of the labels that are new.
        asked: Labels that were asked for; the others were there already, or the same question had been answered.
        asking_s: Time spent on asking [s]; whoever asks adds it up.
        cost: Of what was asked.
        called: Episodes called a success whose truth is known.
        true: Of the episodes with a label and a known truth, those that succeeded.
        monitor: Of failures that are called a success.
    """

    calibration: Calibration | None
    labelled: int = 0
    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Status), 0))
    lags: list[float] = field(default_factory=list)
    asked: int = 0
    asking_s: float = 0.0
    cost: float = 0.0
    called: int = 0
    true: int = 0
    monitor: HackMonitor = field(default_factory=HackMonitor)

    def success(self, answer: Answer) -> bool | None:
        """See `says_success`."""
        return says_success(answer, self.calibration)

    def add(
        self, row: EpisodeSummary, answer: Answer, lag: float | None, asked: bool, *, judges: bool = True
    ) -> Alarm | None:
        """Takes a label; an alarm if it calls one failure too many a success.

        Args:
            row: The episode.
            answer: About it.
            lag: Of the label [s]; None if it was there before.
            asked: Whether it was asked for.
            judges: Whether labels of this kind say success.
        """
        self.labelled += 1
        self.statuses[answer.status] += 1
        if lag is not None:
            self.lags.append(lag)
        if asked:
            self.asked += 1
            self.cost += answer.cost
        truth = known_success(row)
        if not judges or truth is None:
            return None
        called = self.success(answer) is True
        self.called += called
        self.true += truth
        return self.monitor.add(called, truth)

    def summary(self) -> dict[str, Any]:
        """In numbers; the hack gap is the share of successes by the labels above the true one."""
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
            "asked": self.asked,
            "cache_hits": self.labelled - self.asked,
            "labels_per_s": self.asked / self.asking_s if self.asking_s else None,
            "cost": self.cost,
        }
