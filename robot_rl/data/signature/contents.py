"""What a signature covers: every file of a store, by a digest that tells growth from change.

Episodes, overlays and `store.json` are written once, so a digest of their bytes is enough. Two kinds of file grow while
a store is in use: records of what people did (`*.jsonl`), and the database of labels (`*.sqlite`), whose bytes change
with every addition. Of these the digest covers what was there when it was signed, lines and rows.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from robot_rl.data.store.layout import ASIDE, PARTIAL
from robot_rl.errors import DataError
from robot_rl.system.regular_file import open_regular

SIGNATURES = "signatures"
"""Folder of a store's signatures."""
LEFT_OUT = (PARTIAL, ASIDE, SIGNATURES)
"""Folders that are not covered: what is being written, what was taken out, the signatures themselves."""
_LOCK, _TEMPORARY = ".lock", ".tmp"
_LINES, _ROWS = ".jsonl", ".sqlite"
_BESIDE_ROWS = ("-journal", "-wal", "-shm")
_BLOCK = 1 << 20

Entry = dict[str, Any]
"""What is known of a file: `sha256` of its content, and for one that grows `bytes` or `rows`, how much that covers."""


def covered_files(store: Path) -> Iterator[str]:
    """Yield the names of all files that a signature covers, below the store, in order.

    Raises:
        DataError: if a folder cannot be listed.
    """

    def refuse(error: OSError) -> None:
        raise DataError(f"{error.filename}: cannot be listed: {error.strerror}") from error

    for folder, folders, files in os.walk(store, onerror=refuse):
        below = Path(folder).relative_to(store)
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        top = LEFT_OUT if not below.parts else ()
        folders[:] = sorted(name for name in folders if name not in (*top, *links) and not _half_written(name))
        for name in sorted([*files, *links]):
            if not (_passing(name) or name in top):
                yield (below / name).as_posix()


def _passing(name: str) -> bool:
    """Return whether a file comes and goes while somebody works: locks, unfinished files, journals of databases."""
    return _half_written(name) or name.endswith((_LOCK, *(f"{_ROWS}{end}" for end in _BESIDE_ROWS)))


def _half_written(name: str) -> bool:
    """Return whether it is a file, or an overlay, that is still being written."""
    return name.startswith(".") and name.endswith(_TEMPORARY)


def entry_of(file: Path) -> Entry:
    """Return what a signature says of a file.

    Raises:
        DataError: if it cannot be read, or is no regular file.
    """
    return _guarded(file, lambda: _entry(file, None))


def holds_signed_part(file: Path, signed: Entry) -> bool:
    """Return whether a file that grows still begins with what was signed of it.

    Raises:
        DataError: if it cannot be read, or is no regular file.
    """
    grows = "bytes" in signed or "rows" in signed
    return grows and _guarded(file, lambda: _entry(file, signed)) == signed


def _entry(file: Path, like: Entry | None) -> Entry:
    """Return the entry of a file, up to the end of `like` if that is given."""
    if file.suffix == _ROWS:
        return _rows_entry(file, None if like is None else like.get("rows", {}))
    digest, count = hashlib.sha256(), 0
    left = None if like is None or file.suffix != _LINES else int(like.get("bytes", 0))
    with open_regular(file) as content:
        while block := content.read(_BLOCK if left is None else min(_BLOCK, left)):
            digest.update(block)
            count += len(block)
            left = None if left is None else left - len(block)
    return {"sha256": digest.hexdigest(), **({"bytes": count} if file.suffix == _LINES else {})}


def _rows_entry(file: Path, limits: dict[str, int] | None) -> Entry:
    """Return the entry of a database: of each table its statement and its first rows, in the order of adding."""
    with open_regular(file):
        pass  # nothing but a regular file is opened below
    digest, rows = hashlib.sha256(), dict[str, int]()
    with closing(sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True, timeout=10.0)) as database:
        database.execute("PRAGMA trusted_schema=OFF")
        tables = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        version = database.execute("PRAGMA user_version").fetchone()
        others = database.execute("SELECT count(*) FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone()
        digest.update(json.dumps([version, others, tables]).encode())
        for name, statement in tables:
            if "VIRTUAL" in str(statement).upper().split("(")[0].split():
                raise DataError(f"{file}: table {name} is made by code; a database of labels has plain tables")
            limit = -1 if limits is None else int(limits.get(name, 0))
            quoted = '"' + str(name).replace('"', '""') + '"'
            count = 0
            for row in database.execute(f"SELECT * FROM {quoted} ORDER BY rowid LIMIT ?", (limit,)):
                digest.update(json.dumps(row, default=bytes.hex).encode())
                count += 1
            rows[name] = count
    return {"sha256": digest.hexdigest(), "rows": rows}


def _guarded(file: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except OSError as error:
        raise DataError(f"cannot be read: {error}") from error
    except (sqlite3.Error, UnicodeError) as error:
        raise DataError(f"cannot be read as a database: {error}") from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(f"its signed facts make no sense: {error}") from error
