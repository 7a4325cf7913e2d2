"""Labelling beside a recording, for `robot-rl label watch` and for `labeller_node`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from robot_rl.config.labelling import LabelConfig
from robot_rl.data.store.layout import find_store, read_head
from robot_rl.data.store.reward_overlays import check_overlay_name
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.env.registry import make_workcell
from robot_rl.errors import BudgetSpentError, ConfigError, RobotRLError, ValuelessAnswersError
from robot_rl.reward.answer import Answer
from robot_rl.reward.budget import Budget
from robot_rl.reward.label_store import LabelStore
from robot_rl.reward.labels.annotate_new import StoreLabelling
from robot_rl.reward.labels.hack_monitor import HackWatch
from robot_rl.reward.validation.probability_calibration import read_calibration
from robot_rl.reward.vlm.make_backend import make_backend

PAUSE = 2.0
"""Between two polls of the store [s]."""


class LabelWatching:
    """Labels each episode of a store once, as it comes, and compares the labels with known outcomes.

    Args:
        store: Directory of a store, or of a run.
        config: The labeller's settings.
        name: Of the labels; none: their kind.
        notify: Receives sentences about what happens.
        alarm: Receives a sentence when labels call too many failures a success.

    Raises:
        DataError: if there is no store, or labels cannot have that name.
        ConfigError: if the labeller compares episodes, or the task has no instruction.
    """

    def __init__(
        self,
        store: Path,
        config: LabelConfig,
        name: str,
        *,
        notify: Callable[[str], None],
        alarm: Callable[[str], None],
    ) -> None:
        if config.kind == "preference":
            raise ConfigError("preferences are between episodes that are there; use `label run`")
        self.path, self.name, self._config = find_store(store), name or config.kind, config
        check_overlay_name(self.name)
        self._notify, self._alarm = notify, alarm
        self._task = config.task or instruction_of(read_head(self.path)["metadata"].get("task"))
        self._found = HackWatch(None)
        self._stopped = ""
        self.begun = False
        """Whether the backend is loaded and labels."""

    def run(self, stop: threading.Event, pause: float = PAUSE) -> None:
        """Label until `stop`, until the budget is spent, or until answers have no values.

        Raises:
            ConfigError: if the labeller cannot be had.
        """
        budget = Budget(self._config.budget)
        backend = make_backend(self._config, budget)
        try:
            with LabelStore(self.path, create=True) as labels:
                file = labels.calibration_path(self.name)
                self._found = found = HackWatch(read_calibration(file) if file.exists() else None)
                self.begun = True
                labelling = StoreLabelling(
                    self.path, self._config, self._task, labels, self.name, backend, on_label=self._report
                )
                uncertain = "" if file.exists() else "; not calibrated, so a success is p >= 0.5"
                self._notify(f"watching {self.path}{uncertain}")
                while not stop.is_set():
                    done = labelling.round()
                    found.query_s += done.seconds
                    if done.why:
                        self._notify(f"left for the next round: {done.why}")
                    budget.check()
                    stop.wait(pause)
        except (BudgetSpentError, ValuelessAnswersError) as error:
            self._stopped = str(error)
        finally:
            backend.close()

    def summary(self) -> dict[str, Any]:
        """Return the statistics; `stopped` is why it ended by itself, or empty."""
        return {"store": self.path, "name": self.name, **self._found.summary(), "stopped": self._stopped}

    def _report(self, row: EpisodeSummary, answer: Answer, lag: float | None, queried: bool) -> None:
        alarm = self._found.add(row, answer, lag, queried, of_success=self._config.kind == "success")
        if alarm is not None:
            self._alarm(f"ALARM after {row.episode_id}: {alarm}")


def instruction_of(task: object) -> str:
    """Return the instruction of a registered task.

    Raises:
        ConfigError: if the store is of no task that is installed here.
    """
    try:
        cell = make_workcell(str(task))
    except RobotRLError as error:
        raise ConfigError(
            f"what was the robot to do? The store's task is {task!r}: {error}; set it with --set task=..."
        ) from error
    cell.close()
    return cell.task.spec.instruction
