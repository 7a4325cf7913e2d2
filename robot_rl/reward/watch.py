"""Labels episodes while a training records them: in a process of its own, so that control never waits for a label.

It needs no lock of the store: an episode is there as a whole or not at all. An episode whose label does not come is
asked about again in the next round; the training goes on either way.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.config.labelling import LabelConfig
from robot_rl.data.layout import EPISODES, file_name
from robot_rl.data.store import EpisodeStore
from robot_rl.data.summary import EpisodeSummary
from robot_rl.errors import BudgetSpentError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.backend import Backend
from robot_rl.reward.budget import Budget
from robot_rl.reward.calibration import Calibration, counts_as_success
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labelling import Labelling
from robot_rl.reward.monitor import HackMonitor
from robot_rl.reward.query import Kind
from robot_rl.reward.units import Units


@dataclass
class Watched:
    """What came of it.

    Attributes:
        labelled: Episodes that got an answer.
        statuses: How the answers were read.
        lags: From the end of an episode's recording to its label [s].
        judged: Episodes with a label of which it is known whether they succeeded.
        alarms: Raised by the monitor.
        stopped: Why it ended; empty if it was told to.
    """

    labelled: int = 0
    statuses: dict[str, int] = field(default_factory=lambda: dict.fromkeys(map(str, Status), 0))
    lags: list[float] = field(default_factory=list)
    judged: int = 0
    alarms: int = 0
    stopped: str = ""

    def summary(self) -> dict[str, Any]:
        """In numbers."""
        p50, p95 = np.quantile(self.lags, [0.5, 0.95]).tolist() if self.lags else (None, None)
        facts = {"labelled": self.labelled, **self.statuses, "judged": self.judged, "alarms": self.alarms}
        return {**facts, "lag_p50_s": p50, "lag_p95_s": p95, "stopped": self.stopped}


class Watch:
    """Rounds over a store that grows.

    Args:
        store: Directory of the episode store.
        config: Of the labeller.
        task: What the robot was to do.
        labels: Where labels go.
        name: Of the labels.
        backend: Who is asked.
        budget: Shared with the backend.
        calibration: For success; without it a probability of 0.5 is one.
        say: Takes a sentence for the user.
    """

    def __init__(
        self,
        store: Path,
        config: LabelConfig,
        task: str,
        labels: LabelStore,
        name: str,
        backend: Backend,
        budget: Budget,
        *,
        calibration: Calibration | None,
        say: Callable[[str], object],
    ) -> None:
        self._store, self._config, self._task = store, config, task
        self._labels, self._name, self._backend, self._budget = labels, name, backend, budget
        self._calibration, self._say = calibration, say
        self._seen: set[str] = set()
        self._rows: Mapping[str, EpisodeSummary] = {}
        self._begun = False
        self.monitor, self.watched = HackMonitor(), Watched()

    def run(self, stop: threading.Event, pause: float) -> Watched:
        """Rounds until it is told to stop, or the budget is spent.

        Args:
            stop: Tells it.
            pause: Between rounds [s].
        """
        while not stop.is_set():
            self.round()
            try:
                self._budget.check()
            except BudgetSpentError as error:
                self.watched.stopped = str(error)
                break
            stop.wait(pause)
        return self.watched

    def round(self) -> int:
        """Asks about the episodes that are new; returns how many those are."""
        with EpisodeStore.open(self._store) as store:
            self._rows = {row.episode_id: row for row in store.summaries()}
            new = [name for name in self._rows if name not in self._seen]
            if not new:
                return 0
            units = Units(store, self._config, self._task, only=new)
            if not self._begun:
                asked = {"task": self._task, "camera": units.camera, "frames": self._config.frames.count}
                identity = {**self._backend.identity, **asked}
                self._labels.begin(self._name, units.kind, identity, {"watched": True})
                self._begun = True
            work = Labelling(self._labels, self._name, self._backend, on_label=self._take)
            done = work.run(units)
            self._seen |= {name for unit, name in zip(units, new, strict=True) if self._has(unit.subject)}
        if done.stopped:
            self._say(f"left for the next round: {done.stopped}")
        return len(new)

    def _has(self, subject: str) -> bool:
        return self._labels.has(self._name, subject)

    def _take(self, subject: str, answer: Answer) -> None:
        """Counts a new label, and compares it with what is known."""
        row = self._rows[str(json.loads(subject)[0]["episode_id"])]
        file = self._store / EPISODES / file_name(row.position)
        watched = self.watched
        watched.labelled += 1
        watched.statuses[answer.status] += 1
        watched.lags.append(max(0.0, time.time() - file.stat().st_mtime))
        if Kind(self._config.kind) is not Kind.SUCCESS or row.success is None:
            return
        success = answer.status is Status.OK and counts_as_success(answer.values[0], self._calibration)
        alarm = self.monitor.add(success, row.success)
        watched.judged, watched.alarms = self.monitor.judged, self.monitor.alarms
        if alarm is not None:
            self._say(f"ALARM after {row.episode_id}: {alarm}")
