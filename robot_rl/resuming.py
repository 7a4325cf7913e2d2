"""Going on with a run that was stopped: what its configuration may change, and how a user is told to do it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.config.components import TrainConfig
from robot_rl.config.load import config_to_dict, dump_config
from robot_rl.errors import CheckpointError, InterruptedRunError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run_directory import RunDirectory
from robot_rl.training import CHECKPOINT_KIND


def checkpoint_to_resume(run: RunDirectory, config: TrainConfig) -> dict[str, Any] | None:
    """The checkpoint, or None if the run had not come to write one. What was extended becomes the run's configuration.

    Raises:
        CheckpointError: if it cannot be read, or does not go with the configuration.
    """
    started = run.config
    _check_same(started, config)
    checkpoint = load_checkpoint(run.checkpoint_path, kind=CHECKPOINT_KIND) if run.checkpoint_path.exists() else None
    if checkpoint and checkpoint["env_steps"] > config.env_steps:
        raise CheckpointError(
            f"the run has taken {checkpoint['env_steps']} env steps already, more than the {config.env_steps} asked for"
        )
    if config != started:
        dump_config(config, run.config_path)
    return checkpoint


def _check_same(old: TrainConfig, new: TrainConfig) -> None:
    """A resumed run may be extended, not changed.

    Raises:
        CheckpointError: naming what differs.
    """
    extended = replace(
        old,
        env_steps=new.env_steps,
        processes=new.processes,
        realtime=new.realtime,
        max_lead_steps=new.max_lead_steps,
        checkpoint_interval=new.checkpoint_interval,
        evaluation=new.evaluation,
    )
    if extended == new:
        return
    before, after = config_to_dict(extended), config_to_dict(new)
    changed = sorted(key for key in before if before[key] != after[key])
    raise CheckpointError(
        f"the run was started with other settings of {', '.join(changed)}; "
        "resume it without changing them, or start a new run in another directory"
    )


def how_to_resume(path: Path) -> str:
    """The command, for a message."""
    return f"continue with: robot-rl train --resume --out {shlex.quote(str(path))}"


@contextlib.contextmanager
def say_how_to_resume(path: Path) -> Iterator[None]:
    """Ctrl-C at a moment when nothing is saved for it: what the last checkpoint holds is still there."""
    try:
        yield
    except KeyboardInterrupt as error:
        raise InterruptedRunError(f"stopped at once; what was saved before is kept; {how_to_resume(path)}") from error
