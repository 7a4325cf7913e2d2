"""The file of a simulated arm (`world.arm`) that a run was begun with: it goes on with none of other content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.errors import ConfigError, RunDirectoryError
from robot_rl.run.directory.run_directory import RunDirectory

FACT = "arm_file"
"""Name of the fact in a run's provenance."""


def arm_file_facts(config: TrainConfig) -> dict[str, Any]:
    """Return what a new run records of the file, by name; nothing without one, or if there is none to read."""
    if config.world.arm is None or not (path := Path(config.world.arm)).is_file():
        return {}
    return {FACT: {"path": str(path), "sha256": _sha256(path)}}


def check_same_arm_file(run: Path, config: TrainConfig) -> None:
    """Check that a run that goes on with its arm in another file has the same in that.

    Args:
        run: The run directory.
        config: Configuration with which it goes on.

    Raises:
        ConfigError: if the content differs, or it is not known what it was.
        RunDirectoryError: if a file cannot be read.
    """
    before, after = RunDirectory.read_config(run).world.arm, config.world.arm
    if before is None or after is None or before == after:
        return
    sha256 = RunDirectory.read_facts(run).get(FACT, {}).get("sha256")
    if sha256 is None and Path(before).is_file():  # an earlier revision began the run
        sha256 = _sha256(Path(before))
    if sha256 is None or sha256 != _sha256(Path(after)):
        known = "whose content is not known any more" if sha256 is None else f"sha256 {sha256[:12]}"
        raise ConfigError(
            f"world.arm: {run} was started with {before} ({known}), and {after} is another one; go on with a file of "
            "the same content, or start a new run with the other one"
        )


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RunDirectoryError(f"cannot read {path}: {error}; check world.arm") from error
