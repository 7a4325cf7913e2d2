"""Rewards made of labels: a column beside the recorded rewards, for learning from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_rl.data.schema import Episode
from robot_rl.data.sparse_reward import sparse_reward
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import LABELS_CURE, DataError, UncertifiedError
from robot_rl.reward.answer import Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.query import QueryKind
from robot_rl.reward.shaping import potential_between, shaped_reward
from robot_rl.reward.validation.gates import GATES, GateResult
from robot_rl.reward.validation.probability_calibration import Calibration, counts_as_success

USE = {kind: next(iter(uses)) for kind, uses in GATES.items() if uses}
"""The use of labels of a kind as rewards: the first of its uses."""


@dataclass(frozen=True)
class Applied:
    """Counts of the rewards that were written.

    Attributes:
        episodes: That have rewards now.
        without: Episodes that got none, as their label has no value or there is none.
        positive: Of those with rewards, how many are rewarded as a success; None for other kinds.
    """

    episodes: int
    without: tuple[str, ...]
    positive: int | None


def check_certified(
    kind: QueryKind, gates: Sequence[GateResult], allowed: bool, cure: str = LABELS_CURE
) -> GateResult | None:
    """Return the gate for rewards of such labels, None if there is none.

    Args:
        kind: Of the labels.
        gates: Of their report; empty if there is nothing to compare them with.
        allowed: Whether the user takes the risk.
        cure: What to do otherwise, for the message.

    Raises:
        UncertifiedError: if it is not passed, and the user does not.
        DataError: if labels of this kind are not rewards by themselves.
    """
    if kind is QueryKind.SCORE:
        raise DataError(f"labels of kind {kind} are no rewards by themselves, see docs/rewards.md; label success")
    gate = next((gate for gate in gates if gate.use == USE[kind]), None)
    if not allowed and (gate is None or not gate.passed):
        failing = gate.shortcomings if gate else ()
        raise UncertifiedError(USE[kind], failing, cure)
    return gate


def apply_labels(
    store: EpisodeStore,
    name: str,
    labels: Sequence[Label],
    kind: QueryKind,
    provenance: Mapping[str, Any],
    *,
    calibration: Calibration | None,
    discount: float,
) -> Applied:
    """Write the rewards of an overlay.

    Success: 1 at the last step of what counts as one, which is then the end of the task, as for a training that is
    rewarded by labels; any other episode was cut off. Progress: the recorded reward, shaped by it.

    Args:
        store: The episodes.
        name: Of the overlay.
        labels: Of one labeller.
        kind: Of the labels.
        provenance: Where they come from; JSON values.
        calibration: For success; without it a probability of 0.5 is one.
        discount: For progress: the one that is learned with.

    Raises:
        DataError: if the overlay has rewards of an episode already.
        RunDirectoryError: if it cannot be written.
    """
    known = {(clip["episode_id"], clip["fingerprint"]): label for label in labels for clip in label.subject}
    without, written, positive = [], 0, 0
    ended: bool | None = None  # a progress label does not mark an end
    with OverlayWriter(store.path, name, provenance) as writer:
        for episode_id in store.ids():
            mark = store.fingerprint(episode_id)
            label = known.get((episode_id, mark))
            if label is None or label.answer.status is not Status.OK:
                without.append(episode_id)
                continue
            episode = store.read(episode_id)
            if kind is QueryKind.SUCCESS:
                success = counts_as_success(label.answer.values[0], calibration)
                positive += success
                reward, ended = sparse_reward(len(episode), success), success
            else:
                reward = _shaped(episode, label, discount)
            writer.write(episode, mark, reward, terminated=ended)
            written += 1
    return Applied(written, tuple(without), positive if kind is QueryKind.SUCCESS else None)


def _shaped(episode: Episode, label: Label, discount: float) -> np.ndarray:
    rows = label.subject[0]["rows"]
    potential = potential_between(rows, label.answer.values, len(episode))
    return shaped_reward(episode.reward, potential, bool(episode.terminated[-1]), discount)
