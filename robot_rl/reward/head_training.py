"""Trains a success head on part of a store, and leaves the rest to judge it by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch

from robot_rl.config.labelling import FramesConfig
from robot_rl.data.schema import IMAGE_PREFIX
from robot_rl.data.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.reward.success_head import FEWEST, FrameFeatures, SuccessHead, train_head
from robot_rl.reward.truth import Truth
from robot_rl.reward.units import choose_camera, spaced_rows


def train_success_head(
    store: EpisodeStore,
    truth: Mapping[str, Truth],
    *,
    task: str,
    encoder: str,
    size: int,
    frames: FramesConfig,
    share: float,
    seed: int,
    on_episode: Callable[[int], object] = lambda _: None,
) -> tuple[SuccessHead, int]:
    """The head, and how many of the episodes that it was trained on are successes.

    Args:
        store: The episodes.
        truth: Whether they succeeded, by id.
        task: What the robot was to do.
        encoder: `bundled`, `random`, or as `EncoderConfig.name`.
        size: Of the frames [px].
        frames: Camera, and how many frames of each episode.
        share: Of the episodes whose outcome is known.
        seed: Which of them.
        on_episode: Told after each how many are done.

    Raises:
        DataError: if there are too few successes or failures, or an episode has no frames.
    """
    known = [name for name in store.ids() if name in truth and truth[name].success is not None]
    drawn = np.random.default_rng(seed).permutation(len(known))[: round(share * len(known))]
    chosen = [known[index] for index in sorted(drawn)]
    successes = sum(bool(truth[name].success) for name in chosen)
    if min(successes, len(chosen) - successes) < FEWEST:
        raise DataError(
            f"{successes} successes and {len(chosen) - successes} failures are too few to train on; record at least "
            f"{FEWEST} of each whose outcome is known, or raise --share"
        )
    camera = choose_camera(store.read(chosen[0]), frames.camera)
    see = FrameFeatures(encoder, size)
    features, positive, episode = [], [], []
    for number, name in enumerate(chosen):
        one = store.read(name)
        choose_camera(one, camera)
        rows = spaced_rows(len(one), frames)
        features.append(see(one.observations[IMAGE_PREFIX + camera][list(rows)]))
        positive += [bool(truth[name].success) and row == rows[-1] for row in rows]
        episode += [number] * len(rows)
        on_episode(number + 1)
    found = train_head(torch.cat(features), torch.tensor(positive), np.array(episode), seed=seed)
    return SuccessHead(encoder, size, camera, task, tuple(chosen), *found[:4]), successes
