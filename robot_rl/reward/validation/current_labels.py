"""The labels that are about the recordings that a store holds now."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.label_store import Label


class CurrentLabels(NamedTuple):
    """Labels by whether their recordings are still there.

    Attributes:
        labels: Those whose recordings the store holds, in their order.
        outdated: Number of the others: their episode was recorded anew under the same id, or is gone.
    """

    labels: list[Label]
    outdated: int

    @property
    def notes(self) -> list[str]:
        """A sentence about the labels that do not count; empty if all do."""
        if not self.outdated:
            return []
        return [f"{self.outdated} labels are of recordings that the store no longer holds, and do not count"]


def current_labels(store: EpisodeStore, labels: Iterable[Label]) -> CurrentLabels:
    """Return the labels whose every clip is of a recording that the store holds, by its fingerprint.

    Args:
        store: The episodes.
        labels: About episodes of that store.
    """
    ids, mark = set(store.ids()), lru_cache(None)(store.fingerprint)
    every = list(labels)
    current = [
        label
        for label in every
        if all(clip["episode_id"] in ids and clip["fingerprint"] == mark(clip["episode_id"]) for clip in label.subject)
    ]
    return CurrentLabels(current, len(every) - len(current))


def served_by_several(labels: Iterable[Label]) -> list[str]:
    """Return a sentence if the replies named more than one model or system fingerprint; otherwise nothing."""
    told = [label.answer.details.get("served_by") for label in labels]
    servers = sorted({", ".join(str(value) for value in one.values()) for one in told if one})
    if len(servers) < 2:
        return []
    return [f"the server named {len(servers)} models in its replies, so the labels may differ: {'; '.join(servers)}"]
