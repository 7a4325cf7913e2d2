"""What of recorded episodes a base is trained from: demonstrations, corrections, or whatever succeeded."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from robot_rl.data.schema import OPERATOR_SOURCES, Episode, Source
from robot_rl.data.store.operator_labels import outcomes
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.run.demonstrate import demonstrations_in

logger = logging.getLogger(__name__)

LearnFrom = Literal["demonstrations", "corrections", "successes"]


def lessons(store: EpisodeStore, learn_from: LearnFrom) -> Iterator[Episode]:
    """Return the episodes of a store to clone; a base clones the steps in them that an operator commanded.

    Args:
        store: Of demonstrations, of a run, or of an evaluation.
        learn_from: `demonstrations`: those, or all episodes where none is marked as one, without those that failed.
            `corrections`: also the episodes of a run in which somebody took over and which succeeded (HG-DAgger, Kelly
            2019). `successes`: every episode that succeeded, and all that was commanded in it, also by a policy. A
            person's later word on an episode counts.

    Raises:
        DataError: if there is no such episode.
    """
    found = outcomes(store)
    succeeded = [episode_id for episode_id, success in found.items() if success]
    if learn_from == "successes":
        if not succeeded:
            raise DataError(f"{store.path}: none of its {len(store)} episodes succeeded; there is nothing to imitate")
        return (_as_demonstration(store.read(episode_id)) for episode_id in succeeded)
    marked = demonstrations_in(store)
    meant = marked or (store.ids() if learn_from == "demonstrations" else [])
    demonstrations = [episode_id for episode_id in meant if found[episode_id] is not False]  # None: not known
    if failed := len(meant) - len(demonstrations):
        logger.info("%d of %d demonstrations failed and are left out", failed, len(meant))
    if learn_from == "demonstrations":
        if failed and not demonstrations:
            raise DataError(f"{store.path}: all of its {failed} demonstrations failed; there is nothing to imitate")
        return (store.read(episode_id) for episode_id in demonstrations)
    others = [episode_id for episode_id in succeeded if episode_id not in set(marked)]
    corrected = [one for one in others if np.isin(store.sources(one), OPERATOR_SOURCES).any()]
    if not corrected:
        raise DataError(
            f"{store.path}: in none of its {len(others)} successful episodes without a demonstration did anybody take "
            "over; use --learn-from demonstrations"
        )
    return (store.read(episode_id) for episode_id in [*demonstrations, *corrected])


def _as_demonstration(episode: Episode) -> Episode:
    """Return an episode in which a script commanded what a policy did."""
    source = np.where(episode.source == Source.POLICY, Source.SCRIPT, episode.source)
    return replace(episode, source=source.astype(episode.source.dtype))
