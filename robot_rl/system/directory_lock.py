"""A directory for one process at a time: an exclusive lock that the kernel drops however its holder ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Self

from robot_rl.errors import RunDirectoryError
from robot_rl.system.atomic_file import writing


class Lock:
    """An exclusive lock: a file in the directory that it protects, held until it is closed.

    A child made by fork shares it, one made by exec does not.

    Args:
        path: The file.

    Raises:
        RunDirectoryError: if another holder, named in the message, has it; or the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        with writing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip() or "(unknown)"
            os.close(descriptor)
            raise RunDirectoryError(
                f"{path.parent} is in use by process {holder}; wait until it ends, stop it, or choose another directory"
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise RunDirectoryError(
                f"cannot lock {path}: {error.strerror}; choose a directory on a local disk"
            ) from error
        try:
            with writing(path):
                os.truncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except RunDirectoryError:
            os.close(descriptor)
            raise
        self._descriptor: int | None = descriptor

    @property
    def held(self) -> bool:
        """Whether it is not released yet."""
        return self._descriptor is not None

    def close(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        """Return the lock itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Release the lock."""
        self.close()
