"""Recovery of the journals that an interrupted writer left behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_rl.data.schema import Episode
from robot_rl.data.store.journal import JOURNAL_SUFFIX, Journal, read_journal
from robot_rl.errors import DataError


@dataclass(frozen=True)
class Leftover:
    """A file that an interrupted writer left behind.

    Attributes:
        path: The file.
        report: Short description for the user.
        episode: What could be read back of it and is not in the store yet.
        redundant: Whether all that it holds is in `episode` or in the store.
    """

    path: Path
    report: str
    episode: Episode | None = None
    redundant: bool = False


def examine(path: Path, stored: Callable[[str], Episode | None]) -> Leftover:
    """Read a file of the folder `partial`.

    Args:
        path: The file.
        stored: The episode of that id that the store holds, or None.

    Raises:
        DataError: if it is a journal of another version, or cannot be read at all.
    """
    if path.suffix != JOURNAL_SUFFIX:
        return Leftover(path, "is an episode not completely written")
    journal = read_journal(path)
    if journal is None:
        return Leftover(path, "is a journal without a single whole step")
    name = f"journal of {journal.episode_id}"
    if (already := stored(journal.episode_id)) is not None:
        return Leftover(path, f"{name}, which was stored", redundant=_holds(already, journal))
    if not len(journal):
        return Leftover(path, f"{name}: holds no step whose outcome is known")
    try:
        episode = journal.episode()
    except DataError as error:
        return Leftover(path, f"{name}: makes no episode: {error}")
    if journal.complete:
        return Leftover(path, f"{name}: complete, all {len(episode)} steps recovered", episode, redundant=True)
    episode = replace(episode, metadata=episode.facts.updated(interrupted=True).metadata)
    lost = (
        f"the newest step is lost, and {journal.unread} bytes are unreadable"
        if journal.unread
        else "the newest is lost"
    )
    return Leftover(path, f"{name}: {len(episode)} steps recovered, {lost}", episode)


def _holds(episode: Episode, journal: Journal) -> bool:
    """Return whether a stored episode has all that its journal has."""
    steps = journal.rows[: len(journal)] if journal.complete else journal.rows
    return all(np.array_equal(getattr(episode, name)[: len(steps)], steps[name]) for name in ("stamp_action", "action"))
