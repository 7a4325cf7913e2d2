"""The runs of a suite: each a process of `robot-rl train` with a directory of its own; see `robot_rl.bench.jobs`."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import dump_config
from robot_rl.config.resuming import resumable_changes
from robot_rl.errors import ConfigError
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.directory.run_directory import RunDirectory


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
    def name(self) -> str:
        """For people."""
        return f"{self.task}, seed {self.seed}"

    @property
    def finished(self) -> bool:
        """Whether it has a result."""
        return (self.path / "summary.json").is_file()

    def check(self) -> None:
        """Refuse a directory with a run of other settings.

        Raises:
            ConfigError: naming the directory.
        """
        if not RunDirectory.holds_run(self.path):
            return
        made = RunDirectory.read_config(self.path)
        if resumable_changes(made, self.config) != self.config:
            raise ConfigError(f"{self.path} was made with other settings than this suite's; choose another --out")

    def command(self) -> list[str]:
        """Return the command that starts or resumes it."""
        config = self.path.parent / f"{self.path.name}.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        dump_config(self.config, config)
        resume = ["--resume"] if RunDirectory.holds_run(self.path) else []
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
