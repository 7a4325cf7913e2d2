"""Resuming a run: which settings may change, how its checkpoint is loaded, and the command for it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.camera.crop_profile import check_same_crops
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_to_dict, dump_config, flat_settings
from robot_rl.config.resuming import resumable_changes
from robot_rl.data.schema import BASE_ACTION, Episode
from robot_rl.data.store.layout import count_stored
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ArmStoppedError, CheckpointError, CommandLateError, ConfigError, InterruptedRunError
from robot_rl.learn.checkpoint import load_checkpoint, save_checkpoint
from robot_rl.learn.perception import Perception
from robot_rl.run.deployment import Deployment
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.system.atomic_file import link_or_copy, sync_directory, writing
from robot_rl.system.model_files import TRAINING


def read_training(path: Path) -> dict[str, Any]:
    """Read the checkpoint of a training.

    Raises:
        CheckpointError: if there is none, or it cannot be read.
    """
    return load_checkpoint(path, kind=TRAINING.name)


def check_crops(run: Path, place: Mapping[str, Any], cameras: Sequence[str]) -> None:
    """Check that the cameras of a policy show what they showed its run.

    Args:
        run: The run directory.
        place: The facts of the deployment.
        cameras: Those of the policy.

    Raises:
        ConfigError: if one shows another part of its frames.
        RunDirectoryError: if the run cannot be read.
    """
    check_same_crops(RunDirectory.read_facts(run).get("crops"), place.get("crops"), cameras, run)


def check_goes_on_here(run: Path, config: TrainConfig, deployment: Deployment) -> None:
    """Check that this machine has the device of a run that is resumed or forked, which keeps it.

    Raises:
        ConfigError: with what can be done instead.
    """
    try:
        deployment.check(config)
    except ConfigError as error:
        raise ConfigError(
            f"{run} learns on {config.device}, and torch sees none here; a run that goes on keeps its device, as its "
            "random state is one of it: go on where there is one, or begin a new run with what it has learned and "
            f"recorded: robot-rl train --config {shlex.quote(str(run / 'config.yaml'))} --init-from "
            f"{shlex.quote(str(run))} --init policy,critics,replay,demonstrations --device cpu"
        ) from error


def recorded_after(store: EpisodeStore, stored: int) -> list[str]:
    """Return the episodes that were recorded after a checkpoint.

    Args:
        store: The store.
        stored: How many it held at the checkpoint.

    Raises:
        CheckpointError: if it holds fewer now.
    """
    _check_stored(store.path, len(store), stored)
    return store.ids()[stored:]


def _check_stored(store: Path, there: int, stored: int) -> None:
    if there < stored:
        raise CheckpointError(
            f"the checkpoint knows {stored} episodes, but {store} holds {there}; bring the missing files back, or "
            "start a new run"
        )


def save_training(path: Path, state: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    """Write the checkpoint of a training; the one before it is kept until the new one is complete.

    Args:
        path: The checkpoint.
        state: What the training continues from.
        metadata: Facts that can be read without the state.
    """
    save_checkpoint(path, dict(state), kind=TRAINING.name, metadata=dict(metadata))


def keep_checkpoint(path: Path, env_steps: int, interval: int) -> None:
    """Give the newest checkpoint a second name by which it stays, where a multiple of `interval` was passed.

    Args:
        path: The newest checkpoint.
        env_steps: Of that.
        interval: Env steps; 0 keeps none.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    if interval == 0:
        return
    folder = path.parent / RunDirectory.KEPT
    kept = [int(file.stem) for file in folder.glob("*.pt") if file.stem.isdecimal()]
    if env_steps // interval <= max((step for step in kept if step <= env_steps), default=0) // interval:
        return
    with writing(folder):
        folder.mkdir(exist_ok=True)
        link_or_copy(path, folder / f"{env_steps:09d}.pt")
        sync_directory(folder)


def checkpoint_to_resume(run: RunDirectory, config: TrainConfig) -> dict[str, Any] | None:
    """Load the checkpoint, or return None if the run has none; nothing is written.

    Raises:
        CheckpointError: if it cannot be read, does not go with the configuration, or knows episodes that are not there.
    """
    _check_same(run.config, config, run.path)
    checkpoint = read_training(run.checkpoint_path) if run.checkpoint_path.exists() else None
    if checkpoint and checkpoint["env_steps"] > config.env_steps:
        raise CheckpointError(
            f"the run has taken {checkpoint['env_steps']} env steps already, more than the {config.env_steps} requested"
        )
    if checkpoint:  # counted here, as the files that a training opens are changed by that
        _check_stored(run.episodes_path, count_stored(run.episodes_path), int(checkpoint["stored"]))
    return checkpoint


def keep_settings(run: RunDirectory, config: TrainConfig) -> None:
    """Write the settings with which a run is resumed into it, once nothing can refuse them any more."""
    if config != run.config:
        dump_config(config, run.config_path)


def _check_same(old: TrainConfig, new: TrainConfig, path: Path) -> None:
    """Raise if a setting differs that a resumed run may not change, see `robot-rl train --list-settings`.

    Raises:
        CheckpointError: naming what differs.
    """
    extended = resumable_changes(old, new)
    if extended == new:
        return
    before, after = flat_settings(config_to_dict(extended)), flat_settings(config_to_dict(new))
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    raise CheckpointError(
        f"the run was started with other settings of {', '.join(changed)}; "
        f"resume it without changing them, or begin a new run with parts of it, --init-from {shlex.quote(str(path))}"
    )


def encode_again(
    checkpoint: dict[str, Any], store: EpisodeStore, perception: Perception, log: Callable[[str], None]
) -> None:
    """Compute the features in a checkpoint again, in place, if they were made by another encoder.

    Raises:
        CheckpointError: if the recorded episodes are not those of the checkpoint.
    """
    spec = perception.spec.images
    recorded = store.summaries()[: checkpoint["stored"]]
    for part, demonstration in (("demos", True), ("online", False)):
        memory = checkpoint["learner"].get(part)
        if memory is None:  # of a robot of a fleet, whose learner remembers elsewhere
            continue
        lengths = [int(rows) - 1 for rows in memory["episode_rows"]]
        if spec is None or not lengths or memory.get("images_by") in (spec.maker, None):
            continue
        rows = [row for row in recorded if row.facts.demonstration is demonstration][-len(lengths) :]
        if [row.length for row in rows] != lengths:
            raise CheckpointError(
                f"{store.path} does not hold the {len(lengths)} episodes whose frames have to be encoded again; "
                "go on with the encoder settings of the run"
            )
        log(f"encoding again the frames of {len(rows)} episodes ({part}): {memory['images_by']} -> {spec.maker}")
        episodes = (store.read(row.episode_id) for row in rows)
        percepts = (percept for episode in episodes for percept in perception.of_rows(_any_proposals(episode)))
        memory["images"] = np.stack([spec.check(percept.images) for percept in percepts])
        memory["images_by"] = spec.maker


def _any_proposals(episode: Episode) -> Mapping[str, np.ndarray]:
    """Return what was observed, with some proposals of a base: only the frames count here."""
    return {BASE_ACTION: np.zeros((len(episode) + 1, *episode.action.shape[1:]), np.float32), **episode.observed}


def how_to_resume(path: Path, command: str) -> str:
    """Return how to resume a run: the command, which takes its directory."""
    return f"continue with: {command} {shlex.quote(str(path))}"


def how_far(env_steps: int, wanted: int) -> str:
    """Return how far a run came before it was stopped, e.g. in the evaluation after its last step."""
    if env_steps >= wanted:
        return f"all {wanted} env steps, before their evaluation"
    return f"{env_steps} of {wanted} env steps"


@contextlib.contextmanager
def explain_resume(path: Path, command: str) -> Iterator[None]:
    """Add the command that resumes a run to the error of a Ctrl-C, of an arm that stopped, or of a machine that did."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise InterruptedRunError(
            f"stopped at once; what was saved before is kept; {how_to_resume(path, command)}"
        ) from error
    except (ArmStoppedError, CommandLateError) as error:
        if how_to_resume(path, command) in str(error):  # of several trainings on one arm, another one has added it
            raise
        raise type(error)(f"{error}; what was recorded is kept; {how_to_resume(path, command)}") from error
