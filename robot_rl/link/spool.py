"""Messages that wait for a peer, on the disk, so that their number does not matter."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from robot_rl.files import writing


class Spool:
    """A list of byte strings in a file that nobody else sees and that is gone with its process.

    Args:
        folder: Where the file is made; None takes the system's folder for temporary files.

    Raises:
        RunDirectoryError: from every method that writes, if the disk does not take it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._places: list[tuple[int, int]] = []  # offset and size
        self._end = 0
        self._file = self._make()

    def __len__(self) -> int:
        """Messages in it."""
        return len(self._places)

    @property
    def nbytes(self) -> int:
        """Their size together."""
        return self._end

    def append(self, content: bytes) -> None:
        """Adds a message at the end."""
        with writing(self._folder or Path(tempfile.gettempdir())):
            os.pwrite(self._file, content, self._end)
        self._places.append((self._end, len(content)))
        self._end += len(content)

    def __getitem__(self, index: int) -> bytes:
        """The message at an index from 0."""
        offset, size = self._places[index]
        return os.pread(self._file, size, offset)

    def size(self, index: int) -> int:
        """Size of the message at an index [bytes]."""
        return self._places[index][1]

    def restart(self, contents: Iterable[bytes]) -> None:
        """Holds these messages and no others from now on."""
        old, self._file, self._places, self._end = self._file, self._make(), [], 0
        os.close(old)
        for content in contents:
            self.append(content)

    def close(self) -> None:
        """Gives the disk space back; doing it twice is fine."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _make(self) -> int:
        with writing(self._folder or Path(tempfile.gettempdir())):
            descriptor, name = tempfile.mkstemp(prefix=".spool-", dir=self._folder)
            os.unlink(name)  # the descriptor keeps it until the process ends, however it ends
        return descriptor
