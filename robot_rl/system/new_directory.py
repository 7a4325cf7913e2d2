"""A directory that a job has just made, and that goes again if the job is refused before it has begun.

So a refused call leaves nothing behind that would be in the way of the corrected one.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

logger = logging.getLogger(__name__)

OnExit = Callable[[type[BaseException] | None, BaseException | None, TracebackType | None], None]
"""What `contextlib.ExitStack.push` takes."""


class NewDirectory:
    """A directory for the files of one job. Make this before the directory is made.

    Args:
        path: The directory; it, and folders above it, need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._before = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
        self._missing = [folder for folder in (self._path, *self._path.parents) if not folder.exists()]

    def removed_on_error(self, begun: Callable[[], bool]) -> OnExit:
        """Return a callback for an exit stack; it must be called while the lock of the directory is held.

        After an error, it removes what is new in the directory and the folders that did not exist.

        Args:
            begun: Returns whether the job has made something that has to be kept.
        """

        def leave(kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
            del error, trace
            if kind is not None and not begun():
                self._remove()

        return leave

    def _remove(self) -> None:
        try:
            for entry in [entry for entry in self._path.iterdir() if entry.name not in self._before]:
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink()
        except OSError as error:
            logger.warning("%s is left behind and can be deleted: %s", self._path, error)
            return
        for folder in self._missing:
            with contextlib.suppress(OSError):  # somebody else put something into a folder above
                folder.rmdir()
