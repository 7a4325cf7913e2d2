"""Examples in the context of a query: successful episodes whose progress is their time (few-shot GVL, Ma 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_rl.config.labelling import ExamplesConfig, FramesConfig
from robot_rl.data.schema import IMAGE_PREFIX, Episode
from robot_rl.data.store.layout import find_store
from robot_rl.data.store.operator_labels import outcomes
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError


@dataclass(frozen=True, eq=False)
class Example:
    """An episode in the context, its frames in random order.

    Attributes:
        episode_id: Of the episode.
        fingerprint: Of its recording.
        frames: uint8, shape (N, height, width, 3).
        progress: Share of the task that is done in each, shape (N,).
    """

    episode_id: str
    fingerprint: str
    frames: np.ndarray
    progress: np.ndarray


def read_examples(config: ExamplesConfig, shown: FramesConfig) -> tuple[Example, ...]:
    """Read the first successful episodes of a store; `shown.count` frames of each, evenly spaced in time.

    A person's later label of an episode counts instead of the recorded success.

    Args:
        config: Which store, and how many episodes.
        shown: Camera and number of frames.

    Raises:
        DataError: if there is no such store, it has fewer successes, or they have no frames of the camera.
    """
    if not config.count:
        return ()
    with EpisodeStore.open(find_store(Path(config.store))) as store:
        names = [name for name, success in outcomes(store).items() if success][: config.count]
        if len(names) < config.count:
            raise DataError(f"{store.path}: holds {len(names)} successful episodes, examples.count={config.count}")
        return tuple(_example(store.read(name), store.fingerprint(name), shown) for name in names)


def _example(episode: Episode, fingerprint: str, shown: FramesConfig) -> Example:
    """Return an episode as an example; the order of its frames follows from the fingerprint."""
    steps = len(episode)
    rows = np.unique(np.linspace(0, steps, shown.count).round().astype(int))
    order = np.random.default_rng(list(fingerprint.encode())).permutation(len(rows))
    frames = episode.observations[IMAGE_PREFIX + _camera(episode, shown.camera)]
    return Example(episode.episode_id, fingerprint, frames[rows[order]], rows[order] / steps)


def _camera(episode: Episode, wanted: str) -> str:
    cameras = sorted(key.removeprefix(IMAGE_PREFIX) for key in episode.observations if key.startswith(IMAGE_PREFIX))
    found = [camera for camera in cameras if wanted in ("", camera)]
    if len(found) != 1:
        raise DataError(
            f"example {episode.episode_id}: has the cameras {', '.join(cameras) or 'none'}; set frames.camera to one "
            "that the episodes to label have too"
        )
    return found[0]
