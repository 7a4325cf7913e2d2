"""The runs of a suite: each a process of `robot-rl train` with a directory of its own, several at a time.

A finished run stays, a stopped or killed one is resumed, and one that failed is started again by the next call.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import dump_config
from robot_rl.config.resuming import resumable_changes
from robot_rl.errors import ConfigError
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.child_process import ChildProcess

_POLL = 0.2
"""Time between two looks at the processes [s]."""
_STOP_LIMIT = 120.0
"""Time for a run to end its episode and to save [s]."""


@dataclass(frozen=True)
class SuiteRun:
    """One run of a suite.

    Attributes:
        task: Name of the task.
        seed: Of the run.
        config: Its configuration.
        path: Its run directory.
    """

    task: str
    seed: int
    config: TrainConfig
    path: Path

    @property
    def finished(self) -> bool:
        """Whether it has a result."""
        return (self.path / "summary.json").is_file()

    def check(self) -> None:
        """Refuse a directory with a run of other settings.

        Raises:
            ConfigError: naming the directory.
        """
        if not self.path.exists():
            return
        made = RunDirectory.read_config(self.path)
        if resumable_changes(made, self.config) != self.config:
            raise ConfigError(f"{self.path} was made with other settings than this suite's; choose another --out")

    def command(self) -> list[str]:
        """Return the command that starts or resumes it."""
        config = self.path.parent / f"{self.path.name}.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        dump_config(self.config, config)
        resume = ["--resume"] if self.path.exists() else []
        return [sys.executable, "-m", "robot_rl", "train", "--config", str(config), "--out", str(self.path), *resume]

    def summary(self) -> dict[str, Any]:
        """Return its result; see `conclude`."""
        summary: dict[str, Any] = json.loads((self.path / "summary.json").read_text(encoding="utf-8"))
        return summary

    def curve(self, value: str) -> list[tuple[int, float]]:
        """Return its learning curve: env steps and `success_rate` or `return_mean`."""
        records = read_metrics(self.path / "metrics.jsonl", "curve")
        return [(record["env_step"], record[value]) for record in records if record.get(value) is not None]


def run_path(out: Path, task: str, seed: int) -> Path:
    """Return the directory of a run."""
    return out / re.sub(r"[^\w.-]+", "_", task) / f"seed-{seed}"


@dataclass(frozen=True)
class FailedRun:
    """A run that ended without a result.

    Attributes:
        run: The run.
        reason: Its last line.
    """

    run: SuiteRun
    reason: str


def play(
    runs: Sequence[SuiteRun],
    jobs: int,
    *,
    on_change: Callable[[int, int], object] = lambda finished, running: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[FailedRun]:
    """Play all runs that have no result yet, `jobs` at a time; return those that failed.

    Args:
        runs: All runs of the table.
        jobs: Processes at a time.
        on_change: Called with the number of runs with a result, and of running ones, whenever one of them changes.
        stop: Called often; once it returns True the running ones are stopped, which save, and no other is started.

    Raises:
        ConfigError: before anything starts, if a directory holds a run of other settings.
    """
    for run in runs:
        run.check()
    waiting = [run for run in runs if not run.finished]
    running: dict[SuiteRun, ChildProcess] = {}
    failures: list[FailedRun] = []
    stopping = False
    try:
        while (waiting and not stopping) or running:
            while waiting and len(running) < jobs and not stopping:
                run = waiting.pop(0)
                running[run] = ChildProcess(run.command(), on_line=lambda line: None, death_signal=signal.SIGTERM)
                on_change(sum(one.finished for one in runs), len(running))
            time.sleep(_POLL)
            for run, process in list(running.items()):
                if process.poll() is None:
                    continue
                process.wait()
                del running[run]
                if not run.finished and not stopping:
                    failures.append(FailedRun(run, process.describe_end()))
                on_change(sum(one.finished for one in runs), len(running))
            if not stopping and stop():
                stopping = True
                for process in running.values():
                    process.send_signal(signal.SIGTERM)
    finally:
        for process in running.values():
            process.end(_STOP_LIMIT, signal.SIGTERM)
    return failures
