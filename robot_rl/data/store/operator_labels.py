"""Labels that operators gave to recorded episodes afterwards.

It is kept in overlays: `operator-1`, `operator-2` where a first label was corrected, and so on. The newest label of an
episode counts; what was recorded stays as it was.

Which episodes of a store somebody else gave rewards for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.schema import Episode
from robot_rl.data.sparse_reward import SUCCESS_REWARD, sparse_reward, success_reward
from robot_rl.data.store.reward_overlays import OverlayWriter, overlay_fingerprints, overlay_names, read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError


def rewarded_episodes(store: EpisodeStore, rewards: str | None) -> list[str]:
    """Ids of the episodes that an overlay has rewards for; None: of all.

    Raises:
        DataError: if it has none of any.
    """
    if rewards is None:
        return store.ids()
    having = overlay_fingerprints(store.path, rewards)
    found = [episode_id for episode_id in store.ids() if store.fingerprint(episode_id) in having]
    if not found:
        there = ", ".join(overlay_names(store.path)) or "none; `robot-rl label apply` makes them"
        raise DataError(f"{store.path}: no rewards {rewards!r}; there are: {there}")
    return found


EVERY_STEP: Mapping[str, Any] = {"labelled": "every step"}
"""Facts of a store whose every step records whether the task is done then; one label of a whole episode would
undo that."""
_NAME = re.compile(r"operator-(\d+)")


def check_not_of_operators(name: str) -> None:
    """Refuse a name of rewards that would count as a person's labels.

    Raises:
        DataError: if it is one.
    """
    if _NAME.fullmatch(name):
        raise DataError(f"rewards {name!r}: that is a name of labels by operators; choose another one")


def operator_labels(store: Path) -> dict[str, str]:
    """By fingerprint of each episode that a person labelled in hindsight, the name of the newest such overlay."""
    numbers = sorted(int(found[1]) for name in overlay_names(store) if (found := _NAME.fullmatch(name)))
    return {of: _name(number) for number in numbers for of in overlay_fingerprints(store, _name(number))}


def operator_words(store: EpisodeStore, episode_ids: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the newest label by a person of each episode: `success`, `who` and so on.

    Args:
        store: Their store.
        episode_ids: Of which episodes; None: of all.

    Raises:
        DataError: if there is no such episode, or an overlay is damaged.
    """
    if not (labels := operator_labels(store.path)):
        return {}
    marks = {name: store.fingerprint(name) for name in (store.ids() if episode_ids is None else episode_ids)}
    words = {
        name: dict(read_overlay(store.path, labels[mark], mark).provenance)
        for name, mark in marks.items()
        if mark in labels
    }
    return {name: word for name, word in words.items() if "success" in word}  # others only have such a name


def outcomes(store: EpisodeStore) -> dict[str, bool | None]:
    """Return whether each episode succeeded: by the newest label of a person, else as recorded; None if not known.

    Raises:
        DataError: if an overlay is damaged.
    """
    words = operator_words(store)
    return {
        row.episode_id: bool(words[row.episode_id]["success"]) if row.episode_id in words else row.success
        for row in store.summaries()
    }


def as_called(episode: Episode, overlay: str, success: bool, worth: float = SUCCESS_REWARD) -> Episode:
    """Return an episode as a person called it, to be learned from as replay has it after their word (`write_verdict`).

    Args:
        episode: As recorded.
        overlay: Name of the overlay with their word, which is the source of the rewards then.
        success: Their word.
        worth: Reward of a success.
    """
    failed = bool(episode.terminated[-1]) and not episode.reward[-1] > 0  # nothing follows, whatever it is called
    ends = np.arange(len(episode)) == len(episode) - 1
    facts = episode.facts.updated(success=success, failure=None if success else episode.facts.failure)
    return replace(
        episode,
        reward=np.where(ends, success_reward(success, worth), episode.reward).astype(np.float32),
        terminated=ends & (success or failed),
        truncated=ends & (not (success or failed)),
        reward_source=overlay,
        metadata=facts.metadata,
    )


def label_episode(path: Path, episode_id: str, success: bool, who: str) -> str:
    """Record what an episode of a store was, beside its rewards; returns the name of the overlay.

    Args:
        path: The store; its writer may go on writing.
        episode_id: Which episode.
        success: Whether its end shows the task done.
        who: Name of the operator.

    Raises:
        DataError: if there is no such episode, or each of its steps is labelled.
        RunDirectoryError: if it cannot be written.
    """
    with EpisodeStore.open(path) as store:
        if EVERY_STEP.items() <= store.metadata.items():
            raise DataError(f"{path}: every step of these episodes has a label; record another one instead")
        episode, mark = store.read(episode_id), store.fingerprint(episode_id)
    number = 1
    while mark in overlay_fingerprints(path, _name(number)):
        number += 1
    reward = sparse_reward(len(episode), success)
    facts = {"kind": "operator", "who": who, "success": success, "recorded_judge": episode.facts.judge}
    with OverlayWriter(path, _name(number), facts) as writer:
        writer.write(episode, mark, reward)
    return _name(number)


def _name(number: int) -> str:
    return f"operator-{number}"
