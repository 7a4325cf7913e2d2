"""Zip files as containers: members are stored as they are, and whatever is wrong with one is a `DataError`."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from robot_rl.errors import DataError

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, ..., lengths of the name and of the extra field
_SIGNATURE = b"PK\3\4"
_DAMAGE = (zipfile.BadZipFile, struct.error, OSError, EOFError, KeyError, TypeError, ValueError, RuntimeError)


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


def members(content: bytes, archive: zipfile.ZipFile) -> dict[str, memoryview]:
    """All members of the archive that `content` is, checked as `ZipFile.read` would, but without copying them.

    Raises:
        zipfile.BadZipFile: if one is damaged; `opened` makes that an error of ours.
    """
    view, found = memoryview(content), dict[str, memoryview]()
    for member in archive.infolist():
        start = member.header_offset + _LOCAL_HEADER.size
        signature, name_length, extra_length = _LOCAL_HEADER.unpack(view[member.header_offset : start])
        name = bytes(view[start : start + name_length])
        start += name_length + extra_length
        data = view[start : start + member.file_size]
        if signature != _SIGNATURE or name != member.orig_filename.encode() or member.flag_bits & 1:
            raise zipfile.BadZipFile(f"the header of {member.filename} differs from the directory")
        if len(data) != member.file_size or zlib.crc32(data) != member.CRC or member.filename in found:
            raise zipfile.BadZipFile(f"{member.filename} is damaged")
        found[member.filename] = data
    return found
