"""Labelled frames of recorded episodes: which of them show success, and which of them to learn from.

A frame shows success if the step that led to it was rewarded. That holds for a recording whose every step was labelled
(`robot-rl classifier record`) and for an ordinary one, whose last step alone is rewarded. Frames shortly before one
that shows success are unclear: the peg was in already, or the person had not pressed the button yet.

Of a run that a classifier rewarded, only the episodes count that a person labelled, at once or later: a classifier
shall not learn from itself. A person's later label replaces the recorded one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robot_rl.data.schema import Episode
from robot_rl.data.store.layout import find_store
from robot_rl.data.store.operator_labels import operator_labels
from robot_rl.data.store.reward_overlays import overlay_fingerprints
from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.validation.ground_truth import CLASSIFIER_SOURCE

NEAR = 15
"""Frames as close as this to a success are the hardest to distinguish from one; half of the negatives are such."""
DECEPTIVE = 3
"""Last frames of an episode that a classifier ended as a success, and a person labelled a failure."""


@dataclass(frozen=True, eq=False)
class LabelledEpisode:
    """The frames of an episode; row t is observation t.

    Attributes:
        episode: As recorded.
        fingerprint: Of its file.
        store: Where it is.
        shows: Which frames show success, shape (T + 1,), bool.
        unclear: Which do not, but will within a few steps, shape (T + 1,), bool.
        deceptive: Which do not, but deceived an earlier classifier; they are learned from in any case. As above.
    """

    episode: Episode
    fingerprint: str
    store: Path
    shows: np.ndarray
    unclear: np.ndarray
    deceptive: np.ndarray

    @property
    def labels(self) -> FrameLabels:
        """The labels of its frames."""
        return FrameLabels(self.shows, self.unclear, self.deceptive)


class FrameLabels(NamedTuple):
    """The labels of an episode's frames, as in `LabelledEpisode`."""

    shows: np.ndarray
    unclear: np.ndarray
    deceptive: np.ndarray

    @property
    def negative(self) -> np.ndarray:
        """Which frames certainly show no success."""
        return ~self.shows & ~self.unclear


@dataclass(frozen=True)
class LabelledStore:
    """Episodes with labels.

    Attributes:
        path: Directory of the store, or of a run.
        rewards: Name of the overlay to take the rewards from; None takes a person's later labels where there are some,
            and otherwise the recorded rewards.
    """

    path: Path
    rewards: str | None = None

    def count(self) -> int:
        """Return the number of labelled episodes.

        Raises:
            DataError: if the store cannot be read.
        """
        with EpisodeStore.open(find_store(self.path)) as store:
            return len(self._names(store))

    def episodes(self, margin: int) -> Iterator[LabelledEpisode]:
        """Yield the labelled episodes; of an overlay, those that have it.

        Args:
            margin: Frames before a success that are unclear.

        Raises:
            DataError: if the store or an episode cannot be read.
        """
        with EpisodeStore.open(find_store(self.path)) as store:
            for name, rewards in self._names(store).items():
                episode = store.read(name, rewards=rewards)
                if episode.reward_source != CLASSIFIER_SOURCE:
                    labels = labels_of(episode, margin)
                    yield LabelledEpisode(episode, store.fingerprint(name), store.path, *labels)

    def _names(self, store: EpisodeStore) -> dict[str, str | None]:
        """Return the episodes, each with the overlay that has its rewards."""
        if self.rewards is not None:
            having = overlay_fingerprints(store.path, self.rewards)
            return {name: self.rewards for name in store.ids() if store.fingerprint(name) in having}
        overlays = operator_labels(store.path)
        names = {row.episode_id: row.facts.judge for row in store.summaries()}
        rewards = {name: overlays.get(store.fingerprint(name)) if overlays else None for name in names}
        return {name: rewards[name] for name, judge in names.items() if rewards[name] or judge != CLASSIFIER_SOURCE}


def labels_of(episode: Episode, margin: int) -> FrameLabels:
    """Label the frames of an episode; `margin` as in `LabelledStore.episodes`."""
    shows = shows_success(episode)
    deceptive = np.zeros_like(shows)
    facts = episode.facts
    taken_back = facts.judge == CLASSIFIER_SOURCE and facts.success
    if not shows.any() and (taken_back or facts.overruled == CLASSIFIER_SOURCE):
        deceptive[-DECEPTIVE:] = True
    return FrameLabels(shows, unclear_rows(shows, margin), deceptive)


def shows_success(episode: Episode) -> np.ndarray:
    """Return which observations show success, shape (T + 1,)."""
    return np.concatenate([[False], episode.reward > 0])


def unclear_rows(shows: np.ndarray, margin: int) -> np.ndarray:
    """Return which rows do not show success, but are followed by one that does within `margin` rows."""
    unclear = np.zeros_like(shows)
    for ahead in range(1, margin + 1):
        unclear[:-ahead] |= shows[ahead:]
    return unclear & ~shows


def choose_frames(
    labels: Sequence[FrameLabels], positives: int, negatives: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Choose frames to learn from, spread over the episodes: one of each in turn, until there are enough or no more.

    Args:
        labels: Of each episode.
        positives: How many shall show success.
        negatives: How many shall not: first what has deceived before, then half of them near a success, as long as
            there are such.
        rng: Which ones.

    Returns:
        Number of the episode and row, of each.
    """
    reach = [np.convolve(one.shows, np.ones(2 * NEAR + 1))[NEAR : NEAR + len(one.shows)] > 0 for one in labels]
    rest = [one.negative & ~one.deceptive for one in labels]
    showing, deceptive, near, far = (
        [rng.permutation(np.flatnonzero(which)).tolist() for which in rows]
        for rows in (
            [one.shows for one in labels],
            [one.deceptive for one in labels],
            [r & close for r, close in zip(rest, reach, strict=True)],
            [r & ~close for r, close in zip(rest, reach, strict=True)],
        )
    )
    chosen = _in_turn(deceptive, negatives)
    chosen += _in_turn(near, (negatives - len(chosen)) // 2)
    chosen += _in_turn(far, negatives - len(chosen))
    chosen += _in_turn(near, negatives - len(chosen))
    return sorted(_in_turn(showing, positives) + chosen)


def _in_turn(rows: list[list[int]], count: int) -> list[tuple[int, int]]:
    """Remove rows and return them, one of each episode in turn."""
    taken: list[tuple[int, int]] = []
    while len(taken) < count and any(rows):
        for number, left in enumerate(rows):
            if left and len(taken) < count:
                taken.append((number, left.pop()))
    return taken
