"""Contents of an episode store, in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.schema import FASTEST, Source
from robot_rl.data.store.layout import ASIDE, PARTIAL
from robot_rl.data.store.operator_labels import outcomes
from robot_rl.data.store.reward_overlays import overlay_fingerprints, overlay_names
from robot_rl.data.store.store import EpisodeStore
from robot_rl.system.checked_json import parse_json
from robot_rl.system.regular_file import read_regular

_SHORTEST = 1e9 / FASTEST
"""Shortest period [ns] that is taken for one of control."""


def list_episodes(path: Path) -> list[dict[str, Any]]:
    """One row per episode, without reading any array; the success is a person's later label, else as recorded.

    Raises:
        DataError: if the store, or an episode in it, cannot be read.
    """
    with EpisodeStore.open(path) as store:
        success = outcomes(store)
        return [
            {
                "position": row.position,
                "episode_id": row.episode_id,
                "steps": row.length,
                "success": success[row.episode_id],
                "interrupted": row.facts.interrupted,
                "bytes": store.size(row.episode_id),
                "metadata": dict(row.metadata),
            }
            for row in store.summaries()
        ]


def store_facts(path: Path) -> dict[str, Any]:
    """Count, sizes, observations, who acted, overlays, and what lies beside the episodes. Reads every episode.

    Raises:
        DataError: if the store, or an episode in it, cannot be read.
    """
    with EpisodeStore.open(path) as store:
        rows = store.summaries()
        facts: dict[str, Any] = {
            "kind": "episode store",
            **store.metadata,
            "episodes": len(rows),
            "steps": sum(row.length for row in rows),
            "successes": sum(map(bool, outcomes(store).values())),
            "bytes": sum(store.size(row.episode_id) for row in rows),
        }
        if rows:
            sources, raw = np.zeros(len(Source), int), 0
            for episode in store.episodes():
                sources += np.bincount(episode.source, minlength=len(Source))
                raw += sum(column.nbytes for column in episode.observations.values())
            facts["bytes_uncompressed"] = raw
            facts["steps_by_source"] = {source.name.lower(): int(sources[source]) for source in Source}
            last = store.read(rows[-1].episode_id)
            facts["observations"] = {
                key: f"{column.dtype} {column.shape[1:]}" for key, column in last.observations.items()
            }
            facts["action_size"] = int(last.action.shape[1])
            facts["control_rate_hz"] = control_rate(last.stamp_obs)
    if interrupted := [row.episode_id for row in rows if row.facts.interrupted]:
        facts["interrupted"] = interrupted
    if overlays := {name: len(overlay_fingerprints(path, name)) for name in overlay_names(path)}:
        facts["overlays"] = overlays
    if unfinished := sorted(file.name for file in (path / PARTIAL).glob("*")):
        facts["unfinished"] = unfinished  # being recorded, or to be recovered by the next writer
    if aside := {str(note.parent.relative_to(path)): _reason(note) for note in path.glob(f"{ASIDE}/*/reason.json")}:
        facts["aside"] = aside
    return facts


def control_rate(stamps: np.ndarray) -> float | None:
    """Return the steps per second by the stamps [ns]; None if these are unusable.

    Args:
        stamps: Of the observations, shape (T + 1,).
    """
    period = float(np.median(np.diff(stamps))) if len(stamps) > 1 else 0.0
    return round(1e9 / period, 3) if period > _SHORTEST else None


def _reason(note: Path) -> str:
    try:
        return str(parse_json(read_regular(note))["reason"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"not known: {note.name} cannot be read"
