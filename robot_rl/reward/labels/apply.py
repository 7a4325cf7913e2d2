"""Rewards made of labels: a column beside the recorded rewards, for learning from the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_rl.data.sparse_reward import sparse_reward
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import LABELS_CURE, DataError, UncertifiedError
from robot_rl.reward.answer import Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.query import QueryKind
from robot_rl.reward.shaping import potential_between, shaped_reward
from robot_rl.reward.validation.gates import GateResult, not_compared
from robot_rl.reward.validation.probability_calibration import Calibration, counts_as_success

LOWEST = 0.01
"""Share of the scores that become 0."""


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


def check_certified(kind: QueryKind, verdict: GateResult | None, allowed: bool, cure: str = LABELS_CURE) -> GateResult:
    """Return the verdict on rewards of such labels, for who may go on with it.

    Args:
        kind: Of the labels.
        verdict: Of their report; None for scores, which have none.
        allowed: Whether the user takes the risk.
        cure: What to do otherwise, for the message.

    Raises:
        UncertifiedError: if they are not shown to be fit, or unfit, and the user does not.
    """
    if kind is QueryKind.SCORE or verdict is None:
        use, why = "a reward of every step", "a similarity has no unit, no zero and no end of the task: it has no gate"
        if not allowed:
            cure = f"apply it as shaping, which leaves the best policy as it is, or: {cure}"
            raise UncertifiedError(f"NOT SHOWN to be fit for {use} ({why})", cure)
        return not_compared(use, why)
    return verdict.demand(cure, allowed=allowed)


def apply_labels(
    store: EpisodeStore,
    name: str,
    labels: Sequence[Label],
    kind: QueryKind,
    provenance: Mapping[str, Any],
    *,
    calibration: Calibration | None,
    discount: float,
    instead: bool = False,
) -> Applied:
    """Write the rewards of an overlay, all or, where the process is killed, none.

    Success: 1 at the last step of what counts as one, which is then the end of the task, as for a training that is
    rewarded by labels; any other episode was cut off. Progress: the recorded reward, shaped by it. Score: likewise; or,
    with `instead`, nothing but the score (VLM-RM, Rocamonde 2023): (1 - gamma) times it at every step, of an episode
    that was cut off, so that staying at the goal for ever is worth 1. Scores are scaled from the lowest 1 % of all, 0,
    to the highest, 1.

    Args:
        store: The episodes.
        name: Of the overlay.
        labels: Of one labeller.
        kind: Of the labels.
        provenance: Where they come from; JSON values.
        calibration: For success; without it a probability of 0.5 is one.
        discount: For progress and scores: the one that is learned with.
        instead: For scores: they are the reward, instead of shaping the recorded one.

    Raises:
        DataError: if the overlay has rewards of an episode already.
        RunDirectoryError: if it cannot be written.
    """
    known = {(clip["episode_id"], clip["fingerprint"]): label for label in labels for clip in label.subject}
    without, written, positive = [], 0, 0
    ended: bool | None = False if instead else None  # labels of progress and scores do not mark an end
    low, high = _scale(known.values()) if kind is QueryKind.SCORE else (0.0, 1.0)
    with OverlayWriter(store.path, name, provenance, whole=True) as writer:
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
                rows = label.subject[0]["rows"]
                scaled = np.clip((np.array(label.answer.values) - low) / (high - low), 0.0, 1.0)
                potential = potential_between(rows, scaled.tolist(), len(episode))
                if instead:
                    reward = ((1.0 - discount) * potential[1:]).astype(np.float32)
                else:
                    reward = shaped_reward(episode.reward, potential, bool(episode.terminated[-1]), discount)
            writer.write(episode, mark, reward, terminated=ended)
            written += 1
        if written:
            writer.finish()
    return Applied(written, tuple(without), positive if kind is QueryKind.SUCCESS else None)


def _scale(labels: Iterable[Label]) -> tuple[float, float]:
    """Return the scores that become 0 and 1; one that is far off does not set the scale.

    Raises:
        DataError: if all are the same.
    """
    scores = np.array([value for label in labels for value in label.answer.values])
    low, high = (float(np.quantile(scores, LOWEST)), float(scores.max())) if len(scores) else (0.0, 0.0)
    if not high > low:
        raise DataError("all scores are the same, so nothing is closer to the goal; label with other goals")
    return low, high
