"""Atomic writes: after a crash, a power cut or a full disk a file has its old content or the new, never half of it.

Text and JSON files on top of that, and errors of the operating system with their cure.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.errors import RunDirectoryError


def write_synced(path: Path, chunks: Iterable[bytes | memoryview]) -> None:
    """Write a file and wait until its content is on the disk."""
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())


def check_can_be_written(path: Path) -> None:
    """Check what will be written when much work has been done, with its directory; nothing is made.

    Raises:
        RunDirectoryError: if something is in the way, or writing is not allowed there.
    """
    folder = next(one for one in path.absolute().parents if one.exists())
    wrong = {
        errno.EISDIR: path.is_dir(),
        errno.ENOTDIR: not folder.is_dir(),
        errno.EACCES: not os.access(path if path.exists() else folder, os.W_OK),
    }
    with writing(path):
        for number, is_so in wrong.items():
            if is_so:
                raise OSError(number, os.strerror(number), str(path))


def sync_directory(path: Path) -> None:
    """Wait until the names made, moved or removed in a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, chunks: Iterable[bytes | memoryview], *, previous: Path | None = None) -> None:
    """Replace a file atomically: whatever happens, `path` is whole. One process at a time.

    Args:
        path: The file.
        chunks: Its new content.
        previous: Where to keep the old content, if there is any; on the same disk.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write_synced(temporary, chunks)
        if previous is not None and path.exists():
            link_or_copy(path, previous)  # before the replacement, so that `path` never disappears
        os.replace(temporary, path)
        sync_directory(path.parent)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def link_or_copy(path: Path, other: Path) -> bool:
    """Make `other` hold the content of `path`, atomically: by a hard link, or a copy where there can be none.

    A hard link is safe where files are only ever replaced as a whole, as `replace_file` does.

    Returns:
        Whether it is a hard link.
    """
    spare = other.with_name(f".{other.name}.tmp")
    spare.unlink(missing_ok=True)
    try:
        os.link(path, spare)
    except OSError:
        write_synced(spare, [path.read_bytes()])
        os.replace(spare, other)
        return False
    os.replace(spare, other)
    spare.unlink(missing_ok=True)  # renaming one name of a file to another name of it does nothing
    return True


_CURES = {
    errno.ENOSPC: "the disk is full; make room, or choose a directory on another disk",
    errno.EDQUOT: "the disk quota is used up; make room, or choose a directory on another disk",
    errno.EFBIG: "larger than files may be here; raise the limit (`ulimit -f`), or choose another disk",
    errno.EACCES: "not allowed; choose a directory that you may write to",
    errno.EPERM: "not allowed; choose a directory that you may write to",
    errno.EEXIST: "a file is in the way; choose another directory",
    errno.ENOTDIR: "a file is in the way; choose another directory",
    errno.EISDIR: "a directory is in the way; choose another name",
    errno.EROFS: "the file system is read-only; choose a directory that you may write to",
}


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write `path` into an error with its cure.

    Raises:
        RunDirectoryError: if the body raised an `OSError`, e.g. because the disk is full.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        cure = _CURES.get(error.errno or 0, "check that the directory exists and that you may write to it")
        raise RunDirectoryError(f"cannot write {path}: {reason}; {cure}") from error


def write_atomically(path: Path, text: str) -> None:
    """Write a text file; until the new one is complete and on the disk, the old one stays.

    Raises:
        RunDirectoryError: if it cannot be written; the old file, if any, is unharmed.
    """
    with writing(path):
        replace_file(path, [text.encode()])


def write_result(path: Path, text: str) -> None:
    """Write the text file of a result where a user wants it, in a new folder, too, as `check_can_be_written` allows.

    Raises:
        RunDirectoryError: as `write_atomically`.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    """Add a line of JSON to a file, below one that a killed process or a full disk may have left half.

    Raises:
        RunDirectoryError: if it cannot be written.
    """
    with writing(path), path.open("ab+") as file:
        begin = b""
        if file.tell():
            file.seek(-1, os.SEEK_END)
            begin = b"" if file.read() == b"\n" else b"\n"
        file.write(begin + f"{to_json(row)}\n".encode())


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return JSON of plain values, numpy scalars and arrays, and paths.

    JSON knows no NaN and no infinity: both become `null`, which reads "no finite number". A byte of a file's name that
    is no UTF-8 is escaped, and read back as it was.
    """
    text = json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
