"""Which episodes of a store somebody else gave rewards for."""

from __future__ import annotations

from robot_rl.data.overlays import overlay_fingerprints, overlay_names
from robot_rl.data.store import EpisodeStore
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
