"""Facts about a run directory or an episode store, which is only read, for `robot-rl inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import flat_lines, in_bytes
from robot_rl.data.store.info import store_facts
from robot_rl.data.store.layout import STORE_HEAD
from robot_rl.errors import CheckpointError, RunDirectoryError
from robot_rl.learn.checkpoint import describe_checkpoint
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.directory.run_directory import RunDirectory, missing_run, runs_below
from robot_rl.system.checked_json import parse_json
from robot_rl.system.regular_file import read_regular

RESULTS = ("env_steps", "success_rate", "success_ci95", "episodes", "cycle_time_s", "wall_s")
"""What is shown of a run's summary."""
RETURNS = ("return_mean", "return_ci95")
"""What is shown besides where nothing can succeed."""

ORIGIN = ("how", "run", "env_steps", "parts", "changed")
"""What is shown of the run that it began from."""


def path_facts(path: Path) -> dict[str, Any]:
    """Facts about a run (its task, progress, result, episodes) or about a store.

    Raises:
        RunDirectoryError: if `path` is neither; of a directory with runs in it, the error names them.
    """
    if RunDirectory.holds_run(path):
        return _run(path)
    if (path / STORE_HEAD).is_file():
        return store_facts(path)
    if runs_below(path):
        raise missing_run(path)
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
            result = parse_json(read_regular(summary))
            shown = RESULTS if result["success_rate"] is not None else (*RESULTS, *RETURNS)
            facts |= {"finished": result["env_steps"] >= config.env_steps} | {key: result[key] for key in shown}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunDirectoryError(
                f"{summary} cannot be used: {error}; `robot-rl train --resume` makes it anew"
            ) from error
    try:
        facts["checkpoint"] = describe_checkpoint(checkpoint)["metadata"] if checkpoint.exists() else None
    except CheckpointError as error:
        facts["checkpoint"] = {"error": str(error)}
    if (origin := RunDirectory.read_facts(path).get("origin")) is not None:
        facts["origin"] = {key: origin[key] for key in ORIGIN if key in origin}
    metrics = path / "metrics.jsonl"
    episodes = [record for record in read_metrics(metrics) if record["kind"] == "episode"] if metrics.exists() else []
    facts["person"] = episodes[-1].get("person") if episodes else None
    facts["store"] = store_facts(store) if (store / STORE_HEAD).exists() else None
    return facts


def path_lines(facts: dict[str, Any]) -> list[str]:
    """Return the facts for a person."""
    store = facts.get("store", {}) if facts["kind"] == "run" else facts
    sizes = {key: in_bytes(value) for key, value in (store or {}).items() if key.startswith("bytes")}
    shown = facts | ({"store": store | sizes} if facts["kind"] == "run" and store else sizes)
    return flat_lines(
        {key: "none yet" if value is None and key in ("checkpoint", "store") else value for key, value in shown.items()}
    )
