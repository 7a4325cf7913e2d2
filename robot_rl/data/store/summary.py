"""Summary of a stored episode: its facts, read without its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.data.episode_facts import EpisodeFacts
from robot_rl.data.store.codec import read_attributes
from robot_rl.data.store.layout import position_of
from robot_rl.errors import DataError, EpisodeIdError
from robot_rl.system.regular_file import open_regular

MOVE_OUT = "move that file out of the store to go on without it, or let `robot-rl data verify --repair` do that"


@dataclass(frozen=True)
class EpisodeSummary:
    """Facts of a stored episode, read without its arrays.

    Attributes:
        position: Place in the store, from 0 in the order of writing.
        episode_id: Unique within the store.
        length: Steps.
        metadata: As recorded.
    """

    position: int
    episode_id: str
    length: int
    metadata: Mapping[str, Any]

    @property
    def facts(self) -> EpisodeFacts:
        """The metadata, typed."""
        return EpisodeFacts(self.metadata)

    @property
    def success(self) -> bool | None:
        """Whether the task was done; None if that is not known (yet)."""
        return self.facts.success


def read_summary(file: Path) -> EpisodeSummary:
    """Read the summary of the episode in a file.

    Raises:
        DataError: if it is damaged, or not an episode.
    """
    try:
        position = position_of(file.name)
        with open_regular(file) as content:
            facts = read_attributes(content)
        return EpisodeSummary(position, facts["episode_id"], facts["length"], facts["metadata"])
    except EpisodeIdError as error:
        raise EpisodeIdError(f"{file}: {error}; `robot-rl data verify --repair` gives it another id") from error
    except (OSError, DataError) as error:
        raise DataError(f"{file}: cannot be read: {error}; {MOVE_OUT}") from error
