"""Where things lie in an episode store, and how something is taken out of it without being lost.

<store>/store.json                 format, version, metadata
<store>/episodes/000012.zarr.zip   the episode at position 12, as described in `episode_codec.py`
<store>/partial/                   an episode being recorded (`journal.py`) or being written
<store>/overlays/<name>/           rewards given by somebody else, see `overlays.py`
<store>/labels/                    labels by models, see `robot_rl/reward/label_store.py`
<store>/aside/<n>/                 what was taken out of the store, and why in `reason.json`; nothing is deleted
<store>/writer.lock                held by the one writer; the kernel drops it if the writer dies
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robot_rl.errors import DataError
from robot_rl.system.atomic_file import sync_directory, write_synced, writing
from robot_rl.system.checked_json import read_object

STORE_HEAD = "store.json"
"""The file by which a store is known."""
FORMAT, VERSION = "robot_rl episodes", 1
EPISODES, PARTIAL, OVERLAYS, ASIDE, LOCK = "episodes", "partial", "overlays", "aside", "writer.lock"
SUFFIX = ".zarr.zip"


def file_name(position: int) -> str:
    """Of the episode at a position."""
    return f"{position:06d}{SUFFIX}"


def count_stored(store: Path) -> int:
    """Return the number of whole episodes in a store, which is not opened; 0 if there is none."""
    return sum(1 for _ in (store / EPISODES).glob(f"*{SUFFIX}"))


def position_of(name: str) -> int:
    """Return the position in the name of an episode's file.

    Raises:
        DataError: if it is not the name of an episode's file.
    """
    number = name.removesuffix(SUFFIX)
    if not (number.isascii() and number.isdecimal()) or file_name(int(number)) != name:
        raise DataError(f"is not named like an episode, e.g. {file_name(12)}")
    return int(number)


def read_head(path: Path) -> dict[str, Any]:
    """Read `store.json`: format, version, metadata.

    Raises:
        DataError: if there is no episode store of this version.
    """
    try:
        head = read_object(path / STORE_HEAD)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no episode store there ({STORE_HEAD} is missing); check the path") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path / STORE_HEAD}: cannot be read: {error}") from error
    if head.get("format") != FORMAT or head.get("version") != VERSION:
        found = f"{head.get('format')!r} version {head.get('version')!r}"
        raise DataError(f"{path}: is {found}, this program reads {FORMAT!r} version {VERSION}")
    if not isinstance(head.get("metadata"), dict):
        raise DataError(f"{path / STORE_HEAD}: `metadata` must be a JSON object")
    return head


def find_store(path: Path) -> Path:
    """Find the store at `path`, or in the run directory at `path`.

    Raises:
        DataError: if there is neither.
    """
    for candidate in (path, path / EPISODES):
        if (candidate / STORE_HEAD).is_file():
            return candidate
    raise DataError(f"{path}: neither an episode store ({STORE_HEAD}) nor a run directory that has one; check the path")


def move_aside(store: Path, files: Sequence[Path], reason: str) -> Path:
    """Move files of a store into a new `aside/<n>/`, which is returned.

    Raises:
        RunDirectoryError: if that cannot be done; what was not moved is where it was.
    """
    with writing(store / ASIDE):
        target = new_aside(store, reason, [str(path.relative_to(store)) for path in files])
        for file in files:
            os.rename(file, target / file.name)
        for changed in {target, *(file.parent for file in files)}:
            sync_directory(changed)
    return target


def new_aside(store: Path, reason: str, moved: Sequence[str]) -> Path:
    """Make a folder `aside/<n>/` with its `reason.json`."""
    aside = store / ASIDE
    aside.mkdir(exist_ok=True)
    taken = [int(entry.name) for entry in aside.iterdir() if entry.name.isdecimal()]
    target = aside / str(1 + max(taken, default=-1))
    target.mkdir()
    note = {"reason": reason, "moved": list(moved)}
    write_synced(target / "reason.json", [json.dumps(note, indent=2).encode()])
    sync_directory(aside)
    return target
