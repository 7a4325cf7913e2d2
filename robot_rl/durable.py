"""Binary files that survive a crash, a power cut or a full disk: the old content or the new, never half of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def write_synced(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Writes a file and waits until its content is on the disk."""
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Waits until the names made, moved or removed in a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, chunks: Iterable[bytes | memoryview], *, previous: Path | None = None) -> None:
    """Atomically replaces a file: whatever happens, `path` is whole. One process at a time.

    Args:
        path: The file.
        chunks: Its new content.
        previous: Where to keep the old content, if there is any; on the same disk.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write_synced(temporary, chunks)
        if previous is not None and path.exists():
            _second_name(path, previous)  # before the replacement, so that `path` never disappears
        os.replace(temporary, path)
        sync_directory(path.parent)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _second_name(path: Path, other: Path) -> None:
    """Atomically makes `other` hold what `path` holds: by a hard link, or a copy where the disk has no links."""
    spare = other.with_name(f".{other.name}.tmp")
    spare.unlink(missing_ok=True)
    try:
        os.link(path, spare)
    except OSError:
        write_synced(spare, [path.read_bytes()])
    os.replace(spare, other)
