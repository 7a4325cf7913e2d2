"""Zip files as containers: members are stored as they are, and whatever is wrong with one is a `DataError`."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from robot_rl.errors import DataError

_DAMAGE = (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, KeyError, TypeError, ValueError, RuntimeError)


@contextmanager
def opened(file: IO[bytes], what: str) -> Iterator[zipfile.ZipFile]:
    """An archive to read; what the body raises about its content becomes an error of ours, too.

    Args:
        file: The archive.
        what: What it should be, e.g. `"an episode"`.

    Raises:
        DataError: if it is damaged, or not that.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.compress_type != zipfile.ZIP_STORED:  # ours are not, so this is damage; decompressors choke
                    raise zipfile.BadZipFile(f"{member.filename} is compressed")
            yield archive
    except _DAMAGE as error:
        raise DataError(f"damaged, or not {what}: {type(error).__name__}: {error}") from error
