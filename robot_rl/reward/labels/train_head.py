"""Training of a head on part of a store; the rest is left for its validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from robot_rl.config.labelling import FramesConfig
from robot_rl.data.schema import IMAGE_PREFIX, Episode
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.task_arms import POSE
from robot_rl.errors import DataError
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.progress_head import ProgressHead, principal_components, train_progress_net
from robot_rl.reward.heads.success_head import FEWEST, SuccessHead, train_head
from robot_rl.reward.labels.units import choose_camera, spaced_rows
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.ground_truth import GroundTruth

STAYS = 0.003
"""Largest distance of the tcp from its last position at which it has arrived [m]."""


@dataclass(frozen=True)
class HeadSettings:
    """Input of a head, and the episodes that it is trained on.

    Attributes:
        task: The instruction of the robot.
        encoder: `bundled`, `random`, or as `EncoderConfig.name`.
        size: Of the frames [px].
        frames: Camera; and how many frames of each episode, for progress.
        share: Of the episodes whose outcome is known.
        seed: Which of them, and of all else that is drawn.
    """

    task: str
    encoder: str
    size: int
    frames: FramesConfig
    share: float
    seed: int


@dataclass(frozen=True, eq=False)
class _EncodedEpisodes:
    """Input of a head: ids, camera, features of the frames of each, (frames, features); and outcomes."""

    names: tuple[str, ...]
    camera: str
    features: tuple[Tensor, ...]
    succeeded: tuple[bool, ...]


def train_for(
    kind: QueryKind,
    store: EpisodeStore,
    truth: Mapping[str, GroundTruth],
    settings: HeadSettings,
    on_episode: Callable[[int], object] = lambda _: None,
) -> tuple[SuccessHead | ProgressHead, int]:
    """Train the head for labels of a kind; return it, and how many of its training episodes are successes.

    Args:
        kind: Success or progress.
        store: The episodes.
        truth: Whether they succeeded, by id.
        settings: Its input.
        on_episode: Receives the number of encoded episodes after each.

    Raises:
        DataError: if there are too few successes or failures, or an episode has no frames.
    """
    if kind is QueryKind.SUCCESS:
        seen = _encode(store, truth, settings, FEWEST, lambda episode, _: (0, len(episode)), on_episode)
        return _success_head(seen, settings), sum(seen.succeeded)

    def rows_until_arrival(episode: Episode, success: bool) -> tuple[int, ...]:
        return spaced_rows(_arrival(episode) if success else len(episode), settings.frames)

    seen = _encode(store, truth, settings, 0, rows_until_arrival, on_episode)
    return _progress_head(seen, settings), sum(seen.succeeded)


def _success_head(seen: _EncodedEpisodes, settings: HeadSettings) -> SuccessHead:
    """Train on the last frame of a success as positive; its first frame and those of a failure are negative."""
    positive = torch.tensor([[False, success] for success in seen.succeeded]).flatten()
    episode = np.repeat(np.arange(len(seen.names)), 2)
    found = train_head(torch.cat(seen.features), positive, episode, seed=settings.seed)
    return SuccessHead(settings.encoder, settings.size, seen.camera, settings.task, seen.names, *found[:4])


def _progress_head(seen: _EncodedEpisodes, settings: HeadSettings) -> ProgressHead:
    """Train on the progress of successes: proportional to time until they arrive, and constant from then on."""
    mean, basis = principal_components(torch.cat(seen.features), seed=settings.seed)
    episodes = [(features - mean) @ basis for features in seen.features]
    net = train_progress_net(episodes, seen.succeeded, seed=settings.seed)
    return ProgressHead(settings.encoder, settings.size, seen.camera, settings.task, seen.names, mean, basis, net)


def _encode(
    store: EpisodeStore,
    truth: Mapping[str, GroundTruth],
    settings: HeadSettings,
    fewest_failures: int,
    rows_of: Callable[[Episode, bool], tuple[int, ...]],
    on_episode: Callable[[int], object],
) -> _EncodedEpisodes:
    known = [name for name in store.ids() if name in truth and truth[name].success is not None]
    drawn = np.random.default_rng(settings.seed).permutation(len(known))[: round(settings.share * len(known))]
    names = tuple(known[index] for index in sorted(drawn))
    succeeded = tuple(bool(truth[name].success) for name in names)
    if sum(succeeded) < FEWEST or len(names) - sum(succeeded) < fewest_failures:
        wanted = f"{FEWEST} of each" if fewest_failures else f"{FEWEST} successes"
        raise DataError(
            f"{sum(succeeded)} successes and {len(names) - sum(succeeded)} failures are too few to train on; record at "
            f"least {wanted} whose outcome is known, or raise --share"
        )
    camera = choose_camera(store.read(names[0]), settings.frames.camera)
    encode, features = FrameFeatures(settings.encoder, settings.size), []
    for number, (name, success) in enumerate(zip(names, succeeded, strict=True)):
        one = store.read(name)
        choose_camera(one, camera)
        features.append(encode(one.observations[IMAGE_PREFIX + camera][list(rows_of(one, success))]))
        on_episode(number + 1)
    return _EncodedEpisodes(names, camera, tuple(features), succeeded)


def _arrival(episode: Episode) -> int:
    """Return the step after which the tcp stays where it ends, or the last one if it stays all the time."""
    if POSE not in episode.observations:
        return len(episode)
    position = episode.observations[POSE][:, :3]
    (away,) = np.nonzero(np.linalg.norm(position - position[-1], axis=1) > STAYS)
    return int(away[-1]) + 1 if len(away) else len(episode)
