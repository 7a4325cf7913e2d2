"""A reader that follows an episode store while another process, or another thread, writes to it.

Episodes are numbered by their place in the order of writing. A place and the fingerprint of the episode there say how
far somebody has read, whoever restarts meanwhile.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

from robot_rl.data.schema import Episode
from robot_rl.data.store.codec import decode
from robot_rl.data.store.layout import EPISODES, SUFFIX, position_of
from robot_rl.data.store.reward_overlays import fingerprint
from robot_rl.data.store.summary import MOVE_OUT
from robot_rl.errors import DataError
from robot_rl.system.regular_file import read_regular


class Cursor(NamedTuple):
    """How far a store was read.

    Attributes:
        episodes: How many episodes.
        fingerprint: Of the last of them; empty where there is none.
    """

    episodes: int = 0
    fingerprint: str = ""


class StoreTail:
    """The episodes of a store, also those that are written from now on.

    It does not lock the store and writes nothing. Several threads may use it.

    Args:
        path: Directory of the store, which may come later.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: list[str] = []
        self._scanning = threading.Lock()  # an older listing must not be compared with a newer one

    def __len__(self) -> int:
        """Episodes found by the last `scan`."""
        return len(self._files)

    def scan(self) -> int:
        """Look for new episodes; return how many there are now.

        Raises:
            DataError: if episodes that were there are gone, so that places no longer mean what they did.
        """
        with self._scanning:
            return self._scan(self.path / EPISODES)

    def _scan(self, folder: Path) -> int:
        try:
            found = sorted((e.name for e in folder.iterdir() if e.name.endswith(SUFFIX)), key=position_of)
        except FileNotFoundError:
            found = []
        except OSError as error:
            raise DataError(f"{folder}: cannot be listed: {error.strerror}") from error
        if found[: len(self._files)] != self._files:
            gone = sorted(set(self._files) - set(found))
            raise DataError(
                f"{folder}: {', '.join(gone[:3]) or 'episodes'} were taken out of the middle of what others have read; "
                "put them back"
            )
        self._files = found
        return len(found)

    def read(self, place: int) -> tuple[Episode, str]:
        """Return the episode at a place from 0, and its fingerprint.

        Raises:
            DataError: if it cannot be read.
        """
        path, content = self._content(place)
        try:
            return decode(content), fingerprint(content)
        except DataError as error:
            raise DataError(f"{path}: cannot be read: {error}; {MOVE_OUT}") from error

    def check(self, cursor: Cursor, reader: str) -> None:
        """Refuse a cursor of another store.

        Args:
            cursor: How far `reader` has read.
            reader: Its name in the message.

        Raises:
            DataError: if fewer episodes are here, or another one is at its place.
        """
        if cursor.episodes == 0:
            return
        there = self.scan()
        if there < cursor.episodes:
            raise DataError(
                f"{self.path} holds {there} episodes, {reader} has {cursor.episodes} of this name; it is another "
                "store, or episodes were taken out: bring them back, or give the robot another name"
            )
        if fingerprint(self._content(cursor.episodes - 1)[1]) != cursor.fingerprint:
            raise DataError(
                f"{self.path}: its episode {cursor.episodes - 1} is not the one that {reader} has of this name; it is "
                "another store, or was edited: bring the old files back, or give the robot another name"
            )

    def _content(self, place: int) -> tuple[Path, bytes]:
        path = self.path / EPISODES / self._files[place]
        try:
            return path, read_regular(path)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error}; {MOVE_OUT}") from error
