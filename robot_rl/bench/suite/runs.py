"""The runs of a suite, one for each task and seed; see `TrainingJob`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from robot_rl.bench.training_job import TrainingJob
from robot_rl.config.components import TrainConfig
from robot_rl.run.directory.metrics import read_metrics


@dataclass(frozen=True)
class SuiteRun(TrainingJob):
    """One run of a suite.

    Attributes:
        task: Name of the task.
        seed: Of the run.
        config: Its configuration.
        path: Its run directory.
    """

    part_of: ClassVar[str] = "suite"

    task: str
    seed: int
    config: TrainConfig
    path: Path

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.task}, seed {self.seed}"

    def curve(self, value: str) -> list[tuple[int, float]]:
        """Return its learning curve: env steps and `success_rate` or `return_mean`."""
        records = read_metrics(self.path / "metrics.jsonl", "curve")
        return [(record["env_step"], record[value]) for record in records if record.get(value) is not None]


def run_path(out: Path, task: str, seed: int) -> Path:
    """Return the directory of a run."""
    return out / re.sub(r"[^\w.-]+", "_", task) / f"seed-{seed}"
