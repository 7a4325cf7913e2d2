"""Rewards learned from preferences, for every step of a store: their features and their scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from robot_rl.data.schema import IMAGE_PREFIX, Episode
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.label_store import Label
from robot_rl.reward.preference.bradley_terry import FitInfo, RewardEnsemble
from robot_rl.reward.preference.pairs import Preferences, Shown, combine_orders

Features = Callable[[Episode], Tensor]
"""Features of each observation of an episode, shape (T + 1, n)."""
WORST = 0.01
"""Share of the moments that get nothing, as the worst of them: one that is far off does not set the scale."""
CONTRAST = 4
"""Power to which the closeness of an end is raised, 1 for the best of all moments: half as close is worth little."""
FRAME_SIZE = 128
"""Height and width to which frames are brought [px]."""


def features(of: Literal["state", "frames"], camera: str = "") -> Features:
    """Return the function that computes the features of a moment.

    Args:
        of: `state`: proprioception and the task's estimates, as recorded. `frames`: a frame as the bundled encoder sees
            it, for tasks whose progress no state shows.
        camera: Whose frames.
    """
    if of == "frames":
        encode = FrameFeatures("bundled", FRAME_SIZE)
        return lambda episode: encode(_column(episode, IMAGE_PREFIX + camera))
    return _state


def learn_reward(
    moments: Mapping[str, Tensor], preferences: Preferences, seed: int = 0, *, updates: int = 2000
) -> tuple[RewardEnsemble, FitInfo]:
    """Fit an ensemble to preferences.

    Args:
        moments: Features of each observation, by episode id.
        preferences: Between these moments.
        seed: Everything random follows from it.
        updates: Gradient steps.

    Raises:
        DataError: if there are too few preferences, or they are about episodes that are not there.
    """
    if missing := sorted({name for p in preferences.pairs for name, _ in (p.first, p.second)} - moments.keys()):
        raise DataError(f"preferences are about {', '.join(missing[:3])}, which the store does not have")
    width = next(iter(moments.values())).shape[1]
    first, second = segment_features(moments, [pair.shown for pair in preferences.pairs])
    value = torch.tensor([pair.value for pair in preferences.pairs])
    ensemble = RewardEnsemble(width, torch.Generator().manual_seed(seed))
    return ensemble, ensemble.fit(first, second, value, steps=updates)


def segment_features(moments: Mapping[str, Tensor], pairs: Sequence[tuple[Shown, Shown]]) -> tuple[Tensor, Tensor]:
    """Return the features of both sides of P pairs, each of shape (P, rows, n).

    Where fewer rows are shown of a segment than of others, because its episode is short, some count several times.

    Args:
        moments: Features of each observation, by episode id.
        pairs: Which of them are compared.
    """
    width = next(iter(moments.values())).shape[1]
    longest = max((len(rows) for pair in pairs for _, rows in pair), default=1)

    def features_of(name: str, rows: tuple[int, ...]) -> Tensor:
        places = np.linspace(0, len(rows) - 1, longest).round().astype(int)
        return moments[name][torch.tensor(rows)[places]]

    first, second = (
        torch.stack([features_of(*pair[side]) for pair in pairs]) if pairs else torch.zeros(0, longest, width)
        for side in (0, 1)
    )
    return first, second


def rewards_of_ends(ensemble: RewardEnsemble, moments: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Return rewards of each step, by episode id: 0 to 1 for the last moment of an episode, 0 for all others.

    Closeness on the way is worth nothing. If it were rewarded, or if the reward of the end were proportional to it, a
    policy that stops beside the goal would get half as much as one that reaches it, and learners settle for that.

    Args:
        ensemble: Whose zero and unit are arbitrary.
        moments: Features of each observation, by episode id.
    """
    values_of = {name: ensemble(rows[1:]).numpy() for name, rows in moments.items()}
    every = np.concatenate(list(values_of.values()))
    low, high = np.quantile(every, WORST), every.max()
    rewards = {name: np.zeros(len(values), np.float32) for name, values in values_of.items()}
    for name, values in values_of.items():
        rewards[name][-1] = max((values[-1] - low) / max(high - low, 1e-12), 0.0) ** CONTRAST
    return rewards


def apply_preferences(
    store: EpisodeStore,
    name: str,
    labels: Sequence[Label],
    provenance: Mapping[str, Any],
    *,
    of: Literal["state", "frames"],
) -> FitInfo:
    """Write an overlay with the rewards of all episodes, `rewards_of_ends`, or none; nothing follows their ends.

    Args:
        store: The episodes.
        name: Of the overlay.
        labels: Preferences of one labeller.
        provenance: Where they come from; JSON values.
        of: What of a moment decides, see `features`.

    Raises:
        DataError: if there are too few preferences, or the overlay has rewards of an episode already.
        RunDirectoryError: if it cannot be written.
    """
    camera = str(labels[0].subject[0].get("camera", "")) if labels else ""
    encode = features(of, camera)
    moments = {episode.episode_id: encode(episode) for episode in store.episodes()}
    ensemble, info = learn_reward(moments, combine_orders(labels))
    rewards = rewards_of_ends(ensemble, moments)
    facts = {**provenance, "features": of, "held_out_accuracy": info.accuracy}
    with OverlayWriter(store.path, name, facts, whole=True) as writer:
        for episode in store.episodes():
            mark = store.fingerprint(episode.episode_id)
            writer.write(episode, mark, rewards[episode.episode_id], terminated=True)
        writer.finish()
    return info


def _state(episode: Episode) -> Tensor:
    keys = sorted(key for key in episode.observations if not key.startswith(IMAGE_PREFIX))
    if not keys:
        raise DataError(f"{episode.episode_id} has nothing but frames; take --features frames")
    columns = [episode.observations[key].reshape(len(episode) + 1, -1) for key in keys]
    return torch.from_numpy(np.concatenate(columns, 1).astype(np.float32))


def _column(episode: Episode, key: str) -> np.ndarray:
    if key not in episode.observations:
        raise DataError(f"{episode.episode_id} has no {key}; take --features state")
    return episode.observations[key]
