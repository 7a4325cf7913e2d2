"""The file of a simulated arm (`world.arm`) that a run was begun with: it goes on with none of other content."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.yaml_file import YAML_SUFFIXES, read_yaml
from robot_rl.errors import ConfigError, RunDirectoryError
from robot_rl.run.directory.run_directory import RunDirectory

FACT = "arm_file"
"""Name of the fact in a run's provenance."""


def arm_file_facts(config: TrainConfig) -> dict[str, Any]:
    """Return what a new run records of the file, by name; nothing without one, or if there is none to read."""
    if config.world.arm is None or not (path := Path(config.world.arm)).is_file():
        return {}
    return {FACT: {"path": str(path), **_content(path)}}


def check_same_arm_file(run: Path, config: TrainConfig) -> None:
    """Check that a run goes on with the same arm, in the file of then or in another one.

    Args:
        run: The run directory.
        config: Configuration with which it goes on.

    Raises:
        ConfigError: if the content differs, or it is not known what it was.
        RunDirectoryError: if a file cannot be read.
    """
    before, after = RunDirectory.read_config(run).world.arm, config.world.arm
    if before is None or after is None:
        return
    known = {name: value for name, value in RunDirectory.read_facts(run).get(FACT, {}).items() if name != "path"}
    if before == after and not (known and Path(after).is_file()):  # who makes the arm tells that it is gone
        return
    if not known and Path(before).is_file():  # an earlier revision began the run
        known = _content(Path(before))
    now = _content(Path(after))
    if known and all(now.get(name) == value for name, value in known.items()):
        return
    was = f"sha256 {known['sha256'][:12]}" if known else "whose content is not known any more"
    if before == after:
        raise ConfigError(
            f"world.arm: {after}, or the model that it names, has changed since {run} was started ({was}); bring back "
            "what it was, or start a new run"
        )
    raise ConfigError(
        f"world.arm: {run} was started with {before} ({was}), and {after} is another one; go on with a file of "
        "the same content, or start a new run with the other one"
    )


def _content(path: Path) -> dict[str, str]:
    """Return the SHA-256 of a file, and of the model that a YAML file names, if that is there."""
    content = {"sha256": _sha256(path)}
    if path.suffix.lower() in YAML_SUFFIXES:
        told = read_yaml(path, "arm file")
        name = told.get("model") if isinstance(told, dict) else None
        if isinstance(name, str) and (model := path.parent / Path(name).expanduser()).is_file():
            content["model_sha256"] = _sha256(model)
    return content


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise RunDirectoryError(f"cannot read {path}: {error}; check world.arm") from error
