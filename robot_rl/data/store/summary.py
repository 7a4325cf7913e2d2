"""What is known about a stored episode without reading its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.data.store.codec import read_attributes
from robot_rl.data.store.layout import position_of
from robot_rl.errors import DataError

MOVE_OUT = "move that file out of the store to go on without it, or let `robot-rl data verify --repair` do that"


@dataclass(frozen=True)
class EpisodeSummary:
    """What is known about a stored episode without reading its arrays.

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
    def success(self) -> bool | None:
        """The metadata entry `success`, None if it was not recorded."""
        value = self.metadata.get("success")
        return None if value is None else bool(value)


def read_summary(file: Path) -> EpisodeSummary:
    """The summary of the episode in a file.

    Raises:
        DataError: if it is damaged, or not an episode.
    """
    try:
        position = position_of(file.name)
        with open(file, "rb") as content:
            facts = read_attributes(content)
        return EpisodeSummary(position, facts["episode_id"], facts["length"], facts["metadata"])
    except (OSError, DataError) as error:
        raise DataError(f"{file}: cannot be read: {error}; {MOVE_OUT}") from error
