"""Episodes on disk: one file each, which is a zarr group in a zip, there as a whole or not at all.

    <store>/store.json                 format, version, metadata
    <store>/episodes/000012.zarr.zip   the episode at position 12, as described in `episode_codec.py`
    <store>/partial/                   an episode being written; renamed into `episodes` when it is on the disk
    <store>/aside/<n>/                 what was taken out of the store, and why in `reason.json`; nothing is deleted
    <store>/writer.lock                held by the one writer; the kernel drops it if the writer dies

An episode belongs to the store from the moment its file is renamed into `episodes`, and to nobody before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from robot_rl.data.episode_codec import decode, encode, read_attributes
from robot_rl.data.schema import Episode
from robot_rl.durable import replace_file, sync_directory, write_synced
from robot_rl.errors import DataError, RunDirectoryError
from robot_rl.files import writing
from robot_rl.lock import take_lock

STORE_HEAD = "store.json"
"""The file by which a store is known."""
FORMAT, VERSION = "robot_rl episodes", 1
_EPISODES, _PARTIAL, _ASIDE, _LOCK, _HEAD = "episodes", "partial", "aside", "writer.lock", STORE_HEAD
_SUFFIX = ".zarr.zip"
_MOVE_OUT = "move that file out of the store to go on without it"


@dataclass(frozen=True)
class EpisodeSummary:
    """What is known about a stored episode without reading its arrays.

    Attributes:
        position: Place in the store, from 0 in the order of writing.
        episode_id: Unique within the store.
        length: Steps.
        metadata: As recorded.
    """

    position: int
    episode_id: str
    length: int
    metadata: Mapping[str, Any]

    @property
    def success(self) -> bool | None:
        """The metadata entry `success`, None if it was not recorded."""
        value = self.metadata.get("success")
        return None if value is None else bool(value)


class EpisodeStore:
    """Reads and appends episodes. Make one with `create` or `open`; use it in a `with` block or call `close`.

    One writer at a time; any number of readers, which see the episodes that were complete when they opened.

    Attributes:
        path: Its directory.
        metadata: Given at creation.
        recovered: What an interrupted writer left behind and what was done about it, one sentence each.
    """

    def __init__(self, path: Path, metadata: Mapping[str, Any], lock: int | None) -> None:
        self.path, self.metadata, self.recovered = path, metadata, list[str]()
        self._lock = lock
        self._rows: dict[str, EpisodeSummary] = {}

    @classmethod
    def create(cls, path: Path | str, metadata: Mapping[str, Any] | None = None) -> Self:
        """Makes a store in a new or empty directory and opens it for writing.

        Raises:
            RunDirectoryError: if the directory is in use, not empty or cannot be written.
            DataError: if the metadata are not JSON values.
        """
        path = Path(path)
        given = dict(metadata or {})
        try:
            head = json.dumps({"format": FORMAT, "version": VERSION, "metadata": given}, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise DataError(f"{path}: metadata must be JSON values: {error}") from error
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            if not (path / _LOCK).exists():
                _check_unused(path)  # before the lock file is made, so that a folder that is not ours stays as it was
            lock = take_lock(path / _LOCK)
            try:
                _check_unused(path)
                for name in (_EPISODES, _PARTIAL):
                    (path / name).mkdir(exist_ok=True)
                replace_file(path / _HEAD, [head])  # last: from now on it is a store
                sync_directory(path.absolute().parent)
            except BaseException:
                os.close(lock)
                raise
        return cls(path, given, lock)

    @classmethod
    def open(cls, path: Path | str, *, write: bool = False) -> Self:
        """Opens a store.

        A writer moves what an interrupted writer left unfinished to `aside` and says so in `recovered`; a reader sees
        finished episodes only.

        Raises:
            RunDirectoryError: if another process writes to it, or it cannot be written.
            DataError: if it is not an episode store of this version, or an episode in it cannot be read.
        """
        path = Path(path)
        attributes = _read_head(path)
        if attributes.get("format") != FORMAT or attributes.get("version") != VERSION:
            found = f"{attributes.get('format')!r} version {attributes.get('version')!r}"
            raise DataError(f"{path}: is {found}, this program reads {FORMAT!r} version {VERSION}")
        with writing(path / _LOCK):
            lock = take_lock(path / _LOCK) if write else None
        store = cls(path, attributes["metadata"], lock)
        try:
            store._scan()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Lets go of the lock, so that another process may write."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        """Returns itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes."""
        self.close()

    def __len__(self) -> int:
        """Number of episodes."""
        return len(self._rows)

    def ids(self) -> list[str]:
        """Episode ids in the order of writing."""
        return list(self._rows)

    def summaries(self) -> list[EpisodeSummary]:
        """One row per episode in the order of writing, without reading any array."""
        return list(self._rows.values())

    def append(self, episode: Episode) -> None:
        """Writes an episode; when this returns it is on the disk, and before that it is not in the store at all.

        Raises:
            DataError: if the id is already taken, or the metadata are not JSON values.
            RunDirectoryError: if the store is open for reading only, or cannot be written. Other episodes are unharmed.
        """
        self._check_writable()
        if episode.episode_id in self._rows:
            raise DataError(f"{self.path}: already holds episode {episode.episode_id}; ids are unique in a store")
        position = 1 + max((row.position for row in self._rows.values()), default=-1)
        content = encode(episode)
        partial, final = self.path / _PARTIAL / _name(position), self.path / _EPISODES / _name(position)
        with writing(final):
            try:
                write_synced(partial, [content])
                os.rename(partial, final)
                sync_directory(final.parent)
            except OSError:
                partial.unlink(missing_ok=True)  # ours, incomplete, and the disk may be full
                raise
        self._add(EpisodeSummary(position, episode.episode_id, len(episode), dict(episode.metadata)))

    def read(self, episode_id: str) -> Episode:
        """One episode, every byte of it checked.

        Raises:
            DataError: if there is no such episode, or its file is damaged.
        """
        if episode_id not in self._rows:
            held = f"from {self.ids()[0]} to {self.ids()[-1]}" if self._rows else ""
            raise DataError(f"{self.path}: no episode {episode_id!r}; it holds {len(self)} {held}".rstrip())
        path = self._file(self._rows[episode_id])
        try:
            return decode(path.read_bytes())
        except (OSError, DataError) as error:
            raise DataError(f"{path}: episode {episode_id} cannot be read: {error}; {_MOVE_OUT}") from error

    def episodes(self) -> Iterator[Episode]:
        """All episodes in the order of writing, one in memory at a time."""
        for episode_id in self.ids():
            yield self.read(episode_id)

    def set_aside(self, after: int, reason: str) -> int:
        """Moves the episodes at positions >= `after` to `aside/<n>/`, e.g. those newer than a resumed checkpoint.

        Returns:
            How many were moved. Nothing is deleted; moved back, they are part of the store again.

        Raises:
            RunDirectoryError: if the store is open for reading only, or cannot be written; what was not moved stays.
        """
        self._check_writable()
        leaving = [row for row in self._rows.values() if row.position >= after]
        try:  # newest first, so that an interruption leaves no gap
            self._move_aside([self._file(row) for row in reversed(leaving)], reason)
        finally:
            for row in leaving:
                if not self._file(row).exists():
                    del self._rows[row.episode_id]
        return len(leaving)

    def _scan(self) -> None:
        """Lists the episodes; a writer moves what is not one out of the way."""
        try:
            files = sorted((self.path / _EPISODES).iterdir())
            leftovers = sorted((self.path / _PARTIAL).iterdir()) if self._lock is not None else []
        except OSError as error:
            raise DataError(f"{self.path}: cannot be listed: {error}") from error
        for file in files:
            self._add(_summary(file))
        if leftovers:
            what = ", ".join(str(path.relative_to(self.path)) for path in leftovers)
            target = self._move_aside(leftovers, "not completely written: the writer was interrupted")
            self.recovered.append(f"{self.path}: the writer was interrupted; moved the unfinished {what} to {target}")

    def _move_aside(self, files: list[Path], reason: str) -> Path | None:
        """Moves files into a new `aside/<n>/`, which is returned; None if there is nothing to move."""
        if not files:
            return None
        with writing(self.path / _ASIDE):
            aside = self.path / _ASIDE
            aside.mkdir(exist_ok=True)
            taken = [int(entry.name) for entry in aside.iterdir() if entry.name.isdecimal()]
            target = aside / str(1 + max(taken, default=-1))
            target.mkdir()
            note = {"reason": reason, "moved": [str(path.relative_to(self.path)) for path in files]}
            write_synced(target / "reason.json", [json.dumps(note, indent=2).encode()])
            for file in files:
                os.rename(file, target / file.name)
            for changed in {target, aside, *(file.parent for file in files)}:
                sync_directory(changed)
        return target

    def _add(self, row: EpisodeSummary) -> None:
        if row.episode_id in self._rows:
            places = f"{_name(self._rows[row.episode_id].position)} and {_name(row.position)}"
            raise DataError(f"{self.path / _EPISODES}: {places} are both episode {row.episode_id}; {_MOVE_OUT}")
        self._rows[row.episode_id] = row

    def _file(self, row: EpisodeSummary) -> Path:
        return self.path / _EPISODES / _name(row.position)

    def _check_writable(self) -> None:
        if self._lock is None:
            raise RunDirectoryError(f"{self.path}: closed, or open for reading only; open it with write=True")


def _check_unused(path: Path) -> None:
    """Refuses a directory that holds anything but the beginnings of a store."""
    names = {entry.name for entry in path.iterdir()}
    if _HEAD in names:
        raise RunDirectoryError(f"{path}: already holds an episode store; open it, or choose another path")
    if foreign := sorted(names - {_LOCK, _EPISODES, _PARTIAL, f".{_HEAD}.tmp"}):
        raise RunDirectoryError(f"{path}: not empty: {foreign[:5]}; choose another path")


def _name(position: int) -> str:
    return f"{position:06d}{_SUFFIX}"


def _read_head(path: Path) -> dict[str, Any]:
    """What `store.json` says."""
    try:
        head = json.loads((path / _HEAD).read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{path}: no episode store there ({_HEAD} is missing); check the path") from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path / _HEAD}: cannot be read: {error}") from error
    if not isinstance(head, dict):
        raise DataError(f"{path / _HEAD}: not a JSON object")
    return head


def _summary(file: Path) -> EpisodeSummary:
    """The summary row of one stored episode."""
    try:
        with open(file, "rb") as content:
            facts = read_attributes(content)
        position = int(file.name.removesuffix(_SUFFIX))
        return EpisodeSummary(position, facts["episode_id"], facts["length"], facts["metadata"])
    except (OSError, ValueError, DataError) as error:
        raise DataError(f"{file}: cannot be read: {error}; {_MOVE_OUT}") from error
