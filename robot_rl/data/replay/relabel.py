"""The late result of an ended episode, or its rewards, written into the columns of a memory.

It knows columns and the rows of one episode; it does not know who judged.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def write_verdict(
    columns: Mapping[str, np.ndarray],
    slots: np.ndarray,
    reward: float,
    terminated: bool,
    since: int,
    across: bool = False,
) -> None:
    """Replace the earlier result of an episode.

    Each step from the one that did it on led to where it is done: each is worth the reward, and nothing follows it.
    Nothing follows an episode that ended by a failure either, e.g. by too much force, also where it is called one.

    Args:
        columns: Of a `ReplayBuffer`.
        slots: Of the T steps of the episode, in their order.
        reward: Of those steps.
        terminated: Whether nothing follows; where it is not, what ended by a failure stays ended.
        since: Steps after which it was done, in 1 ... T; T where only the last one counts.
        across: Whether windows go on where control changes hands.
    """
    failed = bool(columns["terminated"][slots[-1]]) and columns["success_at"][slots[0]] == 0
    stale = slots[:-1][columns["terminated"][slots[:-1]]]
    columns["reward"][stale], columns["terminated"][stale] = 0.0, False
    done = slots[since - 1 :]
    columns["reward"][done], columns["terminated"][done] = reward, terminated or failed
    columns["success_at"][slots[0]] = since if terminated and reward > 0 else 0
    _write_runs(columns, slots, since, across)


def write_rewards(
    columns: Mapping[str, np.ndarray], slots: np.ndarray, rewards: np.ndarray, across: bool = False
) -> None:
    """Replace the rewards of an episode; steps that were judged a success keep theirs. No end is changed.

    Args:
        columns: Of a `ReplayBuffer`.
        slots: Of the T steps of the episode, in their order.
        rewards: Of the steps, shape (T,).
        across: As in `write_verdict`.
    """
    success_at = int(columns["success_at"][slots[0]])
    judged = columns["terminated"][slots] if success_at else np.zeros(len(slots), bool)
    columns["reward"][slots[~judged]] = rewards[~judged]
    _write_runs(columns, slots, success_at or len(slots), across)


def _write_runs(columns: Mapping[str, np.ndarray], slots: np.ndarray, since: int, across: bool) -> None:
    """Windows end where it is done and, but for `across`, where control changes hands; later steps are one each."""
    source, number = columns["source"][slots], np.arange(len(slots))
    begins = number >= since
    begins[0] = True
    if not across:
        begins[1:] |= source[1:] != source[:-1]
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, len(slots)))
    columns["run_offset"][slots] = number - np.repeat(starts, lengths)
    columns["run_length"][slots[starts]] = lengths
