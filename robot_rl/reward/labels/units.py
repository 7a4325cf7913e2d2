"""The units of a store that get labels: episodes, or pairs of moments or of segments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from robot_rl.config.labelling import FramesConfig, LabelConfig
from robot_rl.data.schema import IMAGE_PREFIX, Episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.reward.query import Clip, Query, QueryKind, canonical

Shown = tuple[str, tuple[int, ...]]
"""Episode id, and rows of the observations that are shown of it."""
Pair = tuple[Shown, Shown]
KEPT_EPISODES = 8
"""Episodes kept in memory while pairs are drawn from all of them."""


@dataclass(frozen=True, eq=False)
class Unit:
    """Something to be labelled; its frames are read only for the query.

    Attributes:
        subject: As `Query.subject`.
        query: Makes the query.
    """

    subject: str
    query: Callable[[], Query]


class Units:
    """The units of a store, in an order that does not change.

    Args:
        store: The episodes.
        config: Of the labeller.
        task: The instruction of the robot, a sentence.
        only: Ids of the episodes to label; None labels all.

    Raises:
        DataError: if there is no episode, or none has frames of the camera.
    """

    def __init__(
        self, store: EpisodeStore, config: LabelConfig, task: str, *, only: Collection[str] | None = None
    ) -> None:
        self._store, self._config, self._task = store, config, task
        if not len(store):
            raise DataError(f"{store.path}: holds no episodes; there is nothing to label")
        self._episode = lru_cache(KEPT_EPISODES)(store.read)
        self._fingerprint = lru_cache(None)(store.fingerprint)
        rows = [row for row in store.summaries() if only is None or row.episode_id in only]
        self._lengths = {row.episode_id: row.length for row in rows}
        first = self._episode(rows[0].episode_id)
        self.camera = choose_camera(first, config.frames.camera)
        if self.camera in config.frames.also or len({*config.frames.also}) < len(config.frames.also):
            raise DataError(f"frames.also={list(config.frames.also)}: each camera once, and not {self.camera} again")
        self.kind = QueryKind(config.kind)

    def __len__(self) -> int:
        """Return the number of units."""
        return 2 * self._config.pairs if self.kind is QueryKind.PREFERENCE else len(self._lengths)

    def __iter__(self) -> Iterator[Unit]:
        """Iterate over them."""
        if self.kind is QueryKind.PREFERENCE:
            return self._pairs()
        return (self._unit((name, spaced_rows(length, self._config.frames))) for name, length in self._lengths.items())

    def beginning(self, episode_id: str, steps: int) -> Unit:
        """Return the first steps of an episode as a unit, as if it had ended there."""
        return self._unit((episode_id, spaced_rows(steps, self._config.frames)))

    def in_both_orders(self, first: Shown, second: Shown) -> tuple[Unit, Unit]:
        """Return a pair of moments or segments as two units, one for each order."""
        return self._unit(first, second), self._unit(second, first)

    def _pairs(self) -> Iterator[Unit]:
        for first, second in random_pairs(self._lengths, self._config, np.random.default_rng(self._config.seed)):
            yield from self.in_both_orders(first, second)

    def _unit(self, *clips: Shown) -> Unit:
        also = {"also": list(self._config.frames.also)} if self._config.frames.also else {}
        subjects = [
            {"episode_id": name, "fingerprint": self._fingerprint(name), "camera": self.camera, "rows": list(rows)}
            | also
            for name, rows in clips
        ]
        return Unit(
            canonical(subjects), lambda: Query(self.kind, self._task, tuple(self._clip(name, r) for name, r in clips))
        )

    def _clip(self, episode_id: str, rows: tuple[int, ...]) -> Clip:
        episode = self._episode(episode_id)
        choose_camera(episode, self.camera)
        cameras = self.camera, *(choose_camera(episode, other) for other in self._config.frames.also)
        frames, *others = (episode.observations[IMAGE_PREFIX + camera][list(rows)] for camera in cameras)
        views = dict(zip(cameras[1:], others, strict=True))
        return Clip(episode_id, self._fingerprint(episode_id), self.camera, rows, frames, views)


def random_pairs(lengths: Mapping[str, int], config: LabelConfig, rng: np.random.Generator) -> Iterator[Pair]:
    """Yield `config.pairs` pairs of different moments or segments; some end with their episode, the others anywhere.

    Args:
        lengths: Steps of each episode, by its id.
        config: Of the labeller.
        rng: Source of all randomness.

    Raises:
        DataError: if there are no two that differ.
    """
    names = list(lengths)
    shortest = [min(config.segment, lengths[name]) for name in names]
    if sum(lengths[name] + 1 - least for name, least in zip(names, shortest, strict=True)) < 2:
        what = f"segments of {config.segment} steps" if config.segment else "moments"
        raise DataError(f"the store holds fewer than two {what} to compare; record more")
    after = np.cumsum([lengths[name] + 1 for name in names])
    share = config.pair_ends if len(names) > 1 else 0.0  # one episode has one end, and no other to compare
    for _ in range(config.pairs):
        pair: list[Shown] = []
        while not pair or pair[0] == pair[1]:
            drawn = np.where(rng.uniform(size=2) < share, rng.choice(after, 2) - 1, rng.choice(after[-1], 2))
            pair = []
            for flat in drawn.tolist():
                number = int(np.searchsorted(after, flat, side="right"))
                row = flat - (int(after[number - 1]) if number else 0)
                pair.append((names[number], segment_rows(max(row, shortest[number]), config)))
        yield pair[0], pair[1]


def segment_rows(end: int, config: LabelConfig) -> tuple[int, ...]:
    """Return the rows shown of a segment that ends there, evenly spaced; only the end for a single moment."""
    if not config.segment:
        return (end,)
    return tuple(sorted({round(row) for row in np.linspace(max(0, end - config.segment), end, config.frames.count)}))


def spaced_rows(steps: int, config: FramesConfig) -> tuple[int, ...]:
    """Return evenly spaced rows of an episode of so many steps, the last always among them.

    The first is that of the episode, or of `config.span` steps before the end.
    """
    if config.count == 1:
        return (steps,)
    start = max(0, steps - config.span) if config.span else 0
    return tuple(sorted({round(row) for row in np.linspace(start, steps, config.count)}))


def choose_camera(episode: Episode, camera: str) -> str:
    """Return the camera, or the only one of the episode if none is named.

    Raises:
        DataError: if the episode has no frames, none of that camera, or several and none is named.
    """
    cameras = sorted(key.removeprefix(IMAGE_PREFIX) for key in episode.observations if key.startswith(IMAGE_PREFIX))
    if not cameras:
        raise DataError(f"episode {episode.episode_id}: has no frames; record it with cameras to have it labelled")
    if not camera and len(cameras) == 1:
        return cameras[0]
    if camera not in cameras:
        what = f"has no camera {camera!r}" if camera else "has several cameras"
        raise DataError(f"episode {episode.episode_id}: {what}; set frames.camera to one of {', '.join(cameras)}")
    return camera
