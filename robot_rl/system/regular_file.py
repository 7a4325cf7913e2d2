"""Reading of files that may come from anybody: regular files only, since a FIFO never ends and a device never stops."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
}


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: if it cannot be opened, or is a link, a FIFO, a device, a socket or a directory.
    """
    _check_regular(path, os.lstat(path).st_mode)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    try:
        _check_regular(path, os.fstat(descriptor).st_mode)  # it may have been replaced since
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file; raises as `open_regular` does."""
    with open_regular(path) as file:
        return file.read()


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"is {kind}, must be a regular file; put the file itself there", str(path))
