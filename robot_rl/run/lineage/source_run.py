"""The run that another one begins from: its configuration, one of its checkpoints, and facts that keep the lineage.

It is only read, also while it is training: checkpoints and episodes appear under their names when they are whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.data.store.layout import STORE_HEAD
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import CheckpointError
from robot_rl.learn.checkpoint import describe_checkpoint, previous_path, read_checkpoint
from robot_rl.run.directory.fleet_robot import check_learns
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.model_files import TRAINING


@dataclass(frozen=True)
class SourceRun:
    """A run with one of its checkpoints.

    Attributes:
        path: The run directory.
        config: Its configuration.
        checkpoint: File of the checkpoint.
        state: Content of the checkpoint.
        digest: SHA-256 of the checkpoint.
    """

    path: Path
    config: TrainConfig
    checkpoint: Path
    state: dict[str, Any]
    digest: str

    @classmethod
    def read(cls, path: Path, at: int | None = None) -> SourceRun:
        """Read a run.

        Args:
            path: The run directory.
            at: Env steps of the checkpoint; None takes the newest.

        Raises:
            RunDirectoryError: if there is no run, or a robot of a fleet played it.
            CheckpointError: if there is no such checkpoint, or it cannot be read.
        """
        config = RunDirectory.read_config(path)
        check_learns(path)
        file = checkpoint_at(path, at)
        return cls(path, config, file, *read_checkpoint(file, kind=TRAINING.name))

    @property
    def env_steps(self) -> int:
        """Online steps at the checkpoint."""
        return int(self.state["env_steps"])

    def facts(self) -> dict[str, Any]:
        """Return what a run that begins from this one records, with what this one recorded of its own origin."""
        provenance = RunDirectory.read_facts(self.path)
        return {
            "run": str(self.path.absolute()),
            "started": provenance["starts"][0]["started"],
            "git_revision": provenance["starts"][-1]["git"]["revision"],
            "task": self.config.task,
            "actions": provenance.get("actions"),
            "seed": self.config.seed,
            "env_steps": self.env_steps,
            "updates": int(self.state["learner"].get("updates", 0)),
            "checkpoint": self.digest,
            "origin": provenance.get("origin"),
        }

    def state_layout(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each array of numbers that was observed; empty if no episode was recorded."""
        if not (self.path / "episodes" / STORE_HEAD).is_file():
            return {}
        with EpisodeStore.open(self.path / "episodes") as store:
            if not len(store):
                return {}
            observed = store.read(store.ids()[0]).observations
        return state_shapes((key, column.shape[1:]) for key, column in observed.items())


def state_shapes(arrays: Iterable[tuple[str, tuple[int, ...]]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of numbers among observed ones, by name; frames are left out."""
    return {key: tuple(shape) for key, shape in sorted(arrays) if not key.startswith("images/")}


def checkpoint_at(path: Path, at: int | None) -> Path:
    """Return the file of a run's checkpoint after `at` env steps; None takes the newest.

    Raises:
        CheckpointError: if there is none; the error lists those that there are.
    """
    newest = path / "checkpoint.pt"
    if not newest.exists():
        raise CheckpointError(f"{path} has no checkpoint yet; let it train until its first one")
    if at is None:
        return newest
    files = [newest, previous_path(newest), *sorted((path / RunDirectory.KEPT).glob("*.pt"), reverse=True)]
    there = {_steps(file): file for file in reversed(files) if file.exists()}
    if at not in there:
        steps = ", ".join(map(str, sorted(there)))
        raise CheckpointError(
            f"{path} has no checkpoint after {at} env steps; there are: {steps}; a run keeps more of them with "
            "keep_checkpoints"
        )
    return there[at]


def _steps(file: Path) -> int:
    if file.stem.isdecimal():
        return int(file.stem)
    return int(describe_checkpoint(file)["metadata"]["env_steps"])
