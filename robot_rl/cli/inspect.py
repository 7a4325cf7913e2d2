"""`robot-rl inspect`: the contents of a run directory or an episode store, which is only read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from robot_rl.data.store.info import store_facts
from robot_rl.data.store.layout import STORE_HEAD
from robot_rl.errors import CheckpointError, RunDirectoryError
from robot_rl.learn.checkpoint import describe_checkpoint
from robot_rl.run.directory.run_directory import RunDirectory

RESULTS = ("env_steps", "success_rate", "success_ci95", "episodes", "cycle_time_s", "wall_s")
"""What is shown of a run's summary."""


def inspect(path: Path) -> dict[str, Any]:
    """Facts about a run (its task, progress, result, episodes) or about a store.

    Raises:
        RunDirectoryError: if `path` is neither.
    """
    if (path / "provenance.json").is_file():
        return _run(path)
    if (path / STORE_HEAD).is_file():
        return store_facts(path)
    raise RunDirectoryError(f"{path} is neither a run directory (provenance.json) nor an episode store (store.json)")


def _run(path: Path) -> dict[str, Any]:
    config = RunDirectory.read_config(path)
    summary, checkpoint, store = path / "summary.json", path / "checkpoint.pt", path / "episodes"
    facts: dict[str, Any] = {
        "kind": "run",
        "task": config.task,
        "seed": config.seed,
        "finished": False,
        "env_steps_configured": config.env_steps,
    }
    if summary.exists():
        try:
            result = json.loads(summary.read_text(encoding="utf-8"))
            facts |= {"finished": result["env_steps"] >= config.env_steps} | {key: result[key] for key in RESULTS}
        except (OSError, ValueError, KeyError) as error:
            raise RunDirectoryError(
                f"{summary} cannot be used: {error}; `robot-rl train --resume` makes it anew"
            ) from error
    try:
        facts["checkpoint"] = describe_checkpoint(checkpoint)["metadata"] if checkpoint.exists() else None
    except CheckpointError as error:
        facts["checkpoint"] = {"error": str(error)}
    facts["store"] = store_facts(store) if (store / STORE_HEAD).exists() else None
    return facts
