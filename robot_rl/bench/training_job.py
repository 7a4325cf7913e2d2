"""A training as a job: a process of `robot-rl train` with a run directory of its own; see `robot_rl.bench.jobs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import dump_config
from robot_rl.config.resuming import resumable_changes
from robot_rl.errors import ConfigError, DataError
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.checked_json import read_object

SUMMARY = "summary.json"


class TrainingJob:
    """What the runs of suites and sweeps share.

    Attributes:
        config: Configuration of the run.
        path: Its run directory.
    """

    part_of: ClassVar[str]
    """For messages: what these runs are part of."""

    config: TrainConfig
    path: Path

    @property
    def finished(self) -> bool:
        """Whether it has a result, of all its env steps: a run that was made with fewer goes on.

        Raises:
            DataError: if there is one that cannot be read.
        """
        return (self.path / SUMMARY).is_file() and self.summary().get("env_steps") == self.config.env_steps

    def check(self) -> None:
        """Refuse a directory with a run of other settings.

        Raises:
            ConfigError: naming the directory.
        """
        if not RunDirectory.holds_run(self.path):
            return
        made = RunDirectory.read_config(self.path)
        if resumable_changes(made, self.config) != self.config:
            raise ConfigError(
                f"{self.path} was made with other settings than this {self.part_of}'s; choose another --out"
            )
        if made.env_steps > self.config.env_steps:
            raise ConfigError(
                f"{self.path} was made with {made.env_steps} env steps, this {self.part_of} has "
                f"{self.config.env_steps}; choose another --out"
            )
        if (self.path / SUMMARY).exists() and made.evaluation != self.config.evaluation:
            raise ConfigError(
                f"{self.path} was evaluated otherwise than this {self.part_of} asks for; choose another --out"
            )

    def command(self) -> list[str]:
        """Return the command that starts or resumes it."""
        config = self.path.parent / f"{self.path.name}.yaml"
        config.parent.mkdir(parents=True, exist_ok=True)
        dump_config(self.config, config)
        resume = ["--resume"] if RunDirectory.holds_run(self.path) else []
        return [sys.executable, "-m", "robot_rl", "train", "--config", str(config), "--out", str(self.path), *resume]

    def summary(self) -> dict[str, Any]:
        """Return its result; see `conclude`.

        Raises:
            DataError: if it cannot be read.
        """
        file = self.path / SUMMARY
        try:
            return read_object(file)
        except (OSError, ValueError) as error:
            raise DataError(f"{file}: cannot be read: {error}") from error
