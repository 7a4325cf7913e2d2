"""One run of a trial up to a rung; see `TrainingJob`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from robot_rl.bench.training_job import SUMMARY, TrainingJob
from robot_rl.config.components import TrainConfig
from robot_rl.errors import DataError


@dataclass(frozen=True)
class TrialRun(TrainingJob):
    """One run of a trial.

    Attributes:
        number: Of the trial.
        config: Configuration of the run; its `env_steps` are those of the rung.
        path: Its run directory, the same at every rung: a promoted run is resumed with more steps.
    """

    part_of: ClassVar[str] = "sweep"

    number: int
    config: TrainConfig
    path: Path

    @property
    def name(self) -> str:
        """For people."""
        return f"trial {self.number}, seed {self.config.seed}, {self.config.env_steps} steps"

    @property
    def score(self) -> float:
        """Success rate, or the mean return where nothing can succeed; higher is better.

        Raises:
            DataError: if there is no such result.
        """
        summary = self.summary()
        success = summary.get("success_rate")
        value = summary.get("return_mean") if success is None else success
        if not isinstance(value, int | float):
            raise DataError(f"{self.path / SUMMARY}: holds neither a success rate nor a return")
        return float(value)
