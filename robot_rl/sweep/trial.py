"""One run of a trial up to a rung: a process of `robot-rl train` with a run directory of its own."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import dump_config
from robot_rl.config.resuming import resumable_changes
from robot_rl.errors import ConfigError, DataError
from robot_rl.run.directory.run_directory import RunDirectory

SUMMARY = "summary.json"


@dataclass(frozen=True)
class TrialRun:
    """One run of a trial.

    Attributes:
        number: Of the trial.
        config: Configuration of the run; its `env_steps` are those of the rung.
        path: Its run directory, the same at every rung: a promoted run is resumed with more steps.
    """

    number: int
    config: TrainConfig
    path: Path

    @property
    def name(self) -> str:
        """For people."""
        return f"trial {self.number}, seed {self.config.seed}, {self.config.env_steps} steps"

    @property
    def finished(self) -> bool:
        """Whether it has a result at this rung."""
        return self._summary().get("env_steps") == self.config.env_steps

    @property
    def score(self) -> float:
        """Success rate, or the mean return where nothing can succeed; higher is better.

        Raises:
            DataError: if there is no such result.
        """
        summary = self._summary()
        success = summary.get("success_rate")
        value = summary.get("return_mean") if success is None else success
        if not isinstance(value, int | float):
            raise DataError(f"{self.path / SUMMARY}: holds neither a success rate nor a return")
        return float(value)

    def _summary(self) -> dict[str, Any]:
        try:
            return dict(json.loads((self.path / SUMMARY).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path / SUMMARY}: cannot be read: {error}") from error

    def check(self) -> None:
        """Refuse a directory with a run of other settings.

        Raises:
            ConfigError: naming the directory.
        """
        if not RunDirectory.holds_run(self.path):
            return
        made = RunDirectory.read_config(self.path)
        if resumable_changes(made, self.config) != self.config:
            raise ConfigError(f"{self.path} was made with other settings than this sweep's; choose another --out")

    def command(self) -> list[str]:
        """Return the command that starts or resumes it."""
        config = self.path.parent / f"{self.path.name}.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        dump_config(self.config, config)
        resume = ["--resume"] if RunDirectory.holds_run(self.path) else []
        return [sys.executable, "-m", "robot_rl", "train", "--config", str(config), "--out", str(self.path), *resume]
