"""A fork: a new run that goes on from a checkpoint of another one, with its replay and random state, settings changed.

Files that are never changed in place, checkpoints and episodes, get a second name (hard link) where the disk allows it,
and are copied elsewhere. The other run stays as it is.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.consistency import check_consistent
from robot_rl.config.load import config_to_dict, flat_settings
from robot_rl.config.resuming import forkable_changes, forkable_keys, why_fixed, with_saved_cameras
from robot_rl.data.store.layout import EPISODES, OVERLAYS, PARTIAL, STORE_HEAD, file_name
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import CheckpointError, ConfigError
from robot_rl.learn.checkpoint import describe_checkpoint
from robot_rl.run.directory.arm_file import check_same_arm_file
from robot_rl.run.directory.calibrations import FOLDER
from robot_rl.run.directory.pinned_files import pinned_stage
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.lineage.source_run import SourceRun
from robot_rl.system.atomic_file import link_or_copy, write_synced, writing

PINNED = ("classifier.pt", "classifier.pt.report.json", "progress_head.pt", "base.pt")
CARRIED_FACTS = (
    *("actions", "arm_file", "calibrations", "classifier", "progress_head"),
    *("robot_file", "driver", "commissioning", "crops"),  # of its place, until the fork records its own
)
"""Facts of a run that hold in its forks."""


def fork_run(source: SourceRun, config: TrainConfig, path: Path) -> dict[str, Any]:
    """Make the directory of a fork, which is then resumed.

    Args:
        source: The run and its checkpoint.
        config: Configuration of the fork.
        path: Its directory, new or empty.

    Returns:
        The origin that the fork has recorded, with `changed`, the settings before and after, and `shared`, whether
        episodes and checkpoint are hard links or copies.

    Raises:
        ConfigError: if a setting differs that a fork may not change, or settings contradict each other.
        CheckpointError: if the run lacks episodes of the checkpoint, or the fork could not hold its replay.
        RunDirectoryError: if the directory is not empty or cannot be written.
    """
    config = with_saved_cameras(source.config, config)
    changed = _changed(source, config)
    check_consistent(config, resumed=True)  # before there is a directory, as the others
    check_same_arm_file(source.path, config)
    names = _episode_files(source)
    rows = len(source.state["learner"]["online"]["state"])
    if rows > config.replay.capacity:
        raise CheckpointError(f"{source.path}: its replay has {rows} rows; set replay.capacity to that at least")
    derived, goals = source.state["learner"].get("hindsight"), config.replay.hindsight_goals
    if derived is not None and 0 < goals * config.replay.capacity < len(derived["reward"]):
        raise CheckpointError(
            f"{source.path}: its replay has {len(derived['reward'])} derived rows; replay.capacity times "
            "replay.hindsight_goals has to be that at least, or replay.hindsight_goals=0"
        )
    if source.env_steps > config.env_steps:
        raise CheckpointError(
            f"{source.path}: the checkpoint is after {source.env_steps} env steps, and the fork shall end after "
            f"{config.env_steps}; raise --steps, or choose an earlier one with --at"
        )
    origin = {"how": "fork", **source.facts(), "changed": changed}
    facts = RunDirectory.read_facts(source.path)
    stages = tuple(pinned_stage(name).fact for name, _ in source.config.reward.stages.classifiers)
    carried = {name: facts[name] for name in (*CARRIED_FACTS, *stages) if name in facts}

    def clone(new: Path) -> None:
        with writing(new):
            shared = _clone(source, names, new)
        origin["shared"] = "hard links" if shared else "copies"

    RunDirectory.create(path, config, facts={**carried, "origin": origin}, prepare=clone).close()
    return origin


def _changed(source: SourceRun, config: TrainConfig) -> dict[str, Any]:
    """Return the settings that differ, by key: their values before and after.

    Raises:
        ConfigError: if one may not.
    """
    if (kind := source.config.reward.kind) in ("labels", "preferences"):
        raise ConfigError(
            f"{source.path}: its rewards come from labels (reward.kind={kind}), which belong to its own store, so a "
            "fork would have none; begin a new run with --init-from"
        )
    before, after = (flat_settings(config_to_dict(one)) for one in (source.config, config))
    allowed = flat_settings(config_to_dict(forkable_changes(source.config, config)))
    if fixed := [key for key in after if allowed[key] != after[key]]:
        reasons = "; ".join(f"{key} ({why_fixed(key)})" for key in fixed[:3])
        valid = ", ".join(forkable_keys(TrainConfig))
        raise ConfigError(
            f"{source.path}: a fork cannot change {reasons}; it may change {valid}, and what a resumed run may; for "
            "the rest, begin a new run with --init-from"
        )
    return {key: [before[key], after[key]] for key in after if before[key] != after[key]}


def _episode_files(source: SourceRun) -> list[str]:
    """Return the names of the files of the episodes up to the checkpoint.

    Raises:
        CheckpointError: if some are missing.
    """
    with EpisodeStore.open(source.path / EPISODES) as store:
        positions = [row.position for row in store.summaries()]
    stored = int(source.state["stored"])
    if len(positions) < stored:
        raise CheckpointError(
            f"{source.path}: the checkpoint knows {stored} episodes, but the store holds {len(positions)}; bring the "
            "missing files back"
        )
    return [file_name(position) for position in positions[:stored]]


def _clone(source: SourceRun, names: list[str], new: Path) -> bool:
    """Fill the directory of a fork; return whether checkpoint and episodes are hard links.

    Raises:
        CheckpointError: if the checkpoint was replaced meanwhile, by a run that is training.
    """
    links = [link_or_copy(source.checkpoint, new / "checkpoint.pt")]
    if describe_checkpoint(new / "checkpoint.pt")["metadata"]["env_steps"] != source.env_steps:
        raise CheckpointError(f"{source.path}: has a newer checkpoint by now, as it is training; call it again")
    old_store, new_store = source.path / EPISODES, new / EPISODES
    for folder in (EPISODES, PARTIAL):
        (new_store / folder).mkdir()
    links += [link_or_copy(old_store / EPISODES / name, new_store / EPISODES / name) for name in names]
    for record in old_store.glob("*.jsonl"):
        shutil.copyfile(record, new_store / record.name)
    for old, copy in ((old_store / OVERLAYS, new_store / OVERLAYS), (source.path / FOLDER, new / FOLDER)):
        if old.is_dir():
            shutil.copytree(old, copy, ignore=shutil.ignore_patterns(".*.tmp"))
    stages = (name for stage, _ in source.config.reward.stages.classifiers for name in pinned_stage(stage).files)
    for name in ("metrics.jsonl", *PINNED, *stages):
        if (source.path / name).is_file():
            shutil.copyfile(source.path / name, new / name)
    write_synced(new_store / STORE_HEAD, [(old_store / STORE_HEAD).read_bytes()])
    return all(links)
