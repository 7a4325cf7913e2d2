"""Text files of a run: JSON, written in one piece, with errors that say the cure."""

from __future__ import annotations

import contextlib
import errno
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.durable import replace_file
from robot_rl.errors import RunDirectoryError

_CURES = {
    errno.ENOSPC: "the disk is full; make room, or choose a directory on another disk",
    errno.EDQUOT: "the disk quota is used up; make room, or choose a directory on another disk",
    errno.EFBIG: "larger than files may be here; raise the limit (`ulimit -f`), or choose another disk",
    errno.EACCES: "not allowed; choose a directory that you may write to",
    errno.EPERM: "not allowed; choose a directory that you may write to",
    errno.EEXIST: "a file is in the way; choose another directory",
    errno.ENOTDIR: "a file is in the way; choose another directory",
    errno.EROFS: "the file system is read-only; choose a directory that you may write to",
}


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turns the operating system's refusal to write `path` into an error that says the cure.

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
    """Writes a text file; until the new one is complete and on the disk, the old one stays.

    Raises:
        RunDirectoryError: if it cannot be written; the old file, if any, is unharmed.
    """
    with writing(path):
        replace_file(path, [text.encode()])


def to_json(value: Any, *, indent: int | None = None) -> str:
    """JSON of plain values, numpy scalars and arrays, and paths.

    JSON knows no NaN and no infinity: both become `null`, which reads "no finite number".
    """
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


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
