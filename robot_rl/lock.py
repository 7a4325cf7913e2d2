"""A directory for one process at a time: an exclusive lock that the kernel drops however its holder ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from robot_rl.errors import RunDirectoryError
from robot_rl.files import writing


def take_lock(path: Path) -> int:
    """Locks a file, made if need be, in the directory that it stands for.

    Returns:
        Its descriptor; closing it gives the lock back. A child made by fork shares it, one made by exec does not.

    Raises:
        RunDirectoryError: if another holder, named in the message, has it; or the file cannot be written.
    """
    with writing(path):
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.truncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        holder = os.pread(lock, 64, 0).decode(errors="replace").strip() or "(unknown)"
        os.close(lock)
        raise RunDirectoryError(
            f"{path.parent} is in use by process {holder}; wait until it ends, stop it, or choose another directory"
        ) from error
    except OSError as error:
        os.close(lock)
        raise RunDirectoryError(f"cannot lock {path}: {error.strerror}; choose a directory on a local disk") from error
    return lock
