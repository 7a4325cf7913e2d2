"""Ground truth of episodes, as far as it is known: from the environment, a person's later label, or a person's file."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_rl.data.store.operator_labels import operator_words
from robot_rl.data.store.reward_overlays import overlay_fingerprints, read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.errors import DataError

OUTCOME = "outcome"
"""Key of an episode's metadata for how it went, in more detail than success: e.g. `near_miss`, `idle`."""
NEAR_MISS = "near_miss"
CLASSIFIER_SOURCE = "classifier"
"""Reward source of an episode that a classifier rewarded; its success is no ground truth."""
_ANSWERS = {
    "1": True,
    "true": True,
    "yes": True,
    "success": True,
    "0": False,
    "false": False,
    "no": False,
    "failure": False,
}


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The ground truth of one episode.

    Attributes:
        success: Whether it succeeded; None if that is not known.
        outcome: Short name of how it went; empty if that is not known.
        progress: Share of the task done at each observation, shape (T + 1,); None if that is not known.
    """

    success: bool | None
    outcome: str = ""
    progress: np.ndarray | None = None


def read_truth(store: EpisodeStore, *, outcomes: Path | None = None, progress: str = "") -> dict[str, GroundTruth]:
    """Read the ground truth of each episode of a store, by id.

    Args:
        store: The episodes; by default their metadata hold their success, which a classifier's is not, unless a person
            labelled them later.
        outcomes: CSV file with the columns `episode_id` and `success`, and perhaps `outcome`, e.g. by a person; it
            counts instead of both. Without that column, an episode's recorded outcome stays unless the file
            contradicts its recorded success.
        progress: Name of an overlay whose rewards are the true progress after each step; empty for none.

    Raises:
        DataError: if the file or the overlay cannot be used.
    """
    known = {row.episode_id: GroundTruth(known_success(row), row.facts.outcome) for row in store.summaries()}
    for episode_id, label in operator_words(store).items():
        known[episode_id] = replace(known[episode_id], success=bool(label["success"]))
    if outcomes is not None:
        known |= _from_file(outcomes, known)
    if progress:
        marks = overlay_fingerprints(store.path, progress)
        for episode_id, truth in known.items():
            if (mark := store.fingerprint(episode_id)) in marks:
                after = read_overlay(store.path, progress, mark).reward
                known[episode_id] = replace(truth, progress=np.concatenate([[0.0], after]))
        if not any(truth.progress is not None for truth in known.values()):
            raise DataError(f"{store.path}: no overlay {progress!r} with the true progress of any episode")
    return known


def known_success(row: EpisodeSummary) -> bool | None:
    """Return whether an episode succeeded by the environment or a person; None if only by a classifier or not known."""
    if row.facts.judge == CLASSIFIER_SOURCE:
        return None
    return row.facts.task_success if row.success is None else row.success


def _from_file(path: Path, recorded: Mapping[str, GroundTruth]) -> Mapping[str, GroundTruth]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:  # spreadsheets begin a file with a mark
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    known: dict[str, GroundTruth] = {}
    for number, row in enumerate(rows, 2):
        episode_id, answer = (row.get("episode_id") or "").strip(), (row.get("success") or "").strip().lower()
        if episode_id not in recorded:
            raise DataError(f"{path}:{number}: the store has no episode {episode_id!r}; expected episode_id,success")
        if episode_id in known:
            raise DataError(f"{path}:{number}: {episode_id} is there a second time; keep the line that is right")
        if answer not in _ANSWERS:
            raise DataError(f"{path}:{number}: success is {answer!r}; valid: {', '.join(_ANSWERS)}")
        success, before = _ANSWERS[answer], recorded[episode_id]
        kept = before.outcome if OUTCOME not in row and before.success in (None, success) else ""
        known[episode_id] = GroundTruth(success, (row.get(OUTCOME) or kept).strip())
    if not known:
        raise DataError(f"{path}: holds no rows; expected lines `episode_id,success` below that heading")
    return known
