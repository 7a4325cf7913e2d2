"""The progress head by which the rewards of a run are shaped: the one that its configuration names, or its own copy."""

from __future__ import annotations

from pathlib import Path

from robot_rl.config.components import RewardConfig
from robot_rl.env.task import TaskSpec
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.reward.progress_head_file import ProgressHeadFile, read_progress_head_file
from robot_rl.reward.progress_potential import ProgressPotential
from robot_rl.run_directory import RunDirectory
from robot_rl.run_files import KeptFile

KEPT = KeptFile(
    "progress head",
    "progress_head.pt",
    "progress_head",
    "reward.shaping.head",
    lambda config: config.shaping.head,
    read_progress_head_file,
)


def shaping_head_of(config: RewardConfig) -> ProgressHeadFile | None:
    """The head that a configuration names; None if rewards are not shaped.

    Raises:
        DataError: if it cannot be read.
    """
    return KEPT.of(config) if config.shaping.head else None


def shaping_head_of_run(path: Path, config: RewardConfig) -> ProgressHeadFile | None:
    """The head that a run was started with; None if its rewards are not shaped. See `KeptFile.of_run`."""
    return KEPT.of_run(path, config) if config.shaping.head else None


def keep_shaping_head(run: RunDirectory, file: ProgressHeadFile, config: RewardConfig) -> None:
    """Copies the head into a run's directory. See `KeptFile.keep`."""
    KEPT.keep(run, file, config)


def potential_of(file: ProgressHeadFile, config: RewardConfig, spec: TaskSpec) -> ProgressPotential:
    """The potential that shapes rewards of a task.

    Raises:
        ConfigError: if the head was trained for another task.
        UnknownNameError: if the scene lacks the camera that it needs.
    """
    head = file.head
    if head.task != spec.instruction:
        raise ConfigError(
            f"reward.shaping.head={file.path}: trained for {head.task!r}, the task {spec.name} is "
            f"{spec.instruction!r}; train one on episodes of this task"
        )
    if head.camera not in spec.cameras:
        raise UnknownNameError("camera", head.camera, spec.cameras)
    return ProgressPotential(head, config.shaping.scale)
