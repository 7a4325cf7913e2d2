"""Episodes on disk: one file each, which is a zarr group in a zip, there as a whole or not at all.

`layout.py` has all paths. An episode belongs to the store from the moment its file is renamed into `episodes`.
Until then its steps are in a journal (`journal.py`), from which the next writer recovers them if this one is killed.
Many small files, rather than one that grows, so that an episode that is on the disk is never written to again: nothing
that happens later can harm it, it can be copied or moved by anybody, and readers need no lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from robot_rl.data.schema import Episode, Step
from robot_rl.data.store.codec import decode, decode_sources, encode
from robot_rl.data.store.journal import JOURNAL_SUFFIX, JournalWriter
from robot_rl.data.store.layout import (
    ASIDE,
    EPISODES,
    FORMAT,
    LOCK,
    PARTIAL,
    STORE_HEAD,
    VERSION,
    file_name,
    move_aside,
    read_head,
)
from robot_rl.data.store.recorder import RecorderLoad, StepRecorder
from robot_rl.data.store.recovery import examine
from robot_rl.data.store.reward_overlays import fingerprint, read_overlay
from robot_rl.data.store.summary import MOVE_OUT, EpisodeSummary, read_summary
from robot_rl.errors import DataError, RunDirectoryError, StepOrderError
from robot_rl.system.atomic_file import replace_file, sync_directory, write_synced, writing
from robot_rl.system.directory_lock import Lock
from robot_rl.system.new_directory import NewDirectory
from robot_rl.system.regular_file import read_regular


class EpisodeStore:
    """Read and appends episodes. Make one with `create` or `open`; use it in a `with` block or call `close`.

    One writer at a time; any number of readers, which see the episodes that were complete when they opened.

    Attributes:
        path: Its directory.
        metadata: Given at creation.
        recovered: What an interrupted writer left behind and what was done about it, one sentence each.
    """

    def __init__(self, path: Path, metadata: Mapping[str, Any], lock: Lock | None, sync_steps: bool = False) -> None:
        self.path, self.metadata, self.recovered = path, metadata, list[str]()
        self._lock, self._sync_steps = lock, sync_steps
        self._rows: dict[str, EpisodeSummary] = {}
        self._written: dict[str, str] = {}
        self._recording: tuple[str, StepRecorder] | None = None
        self._load = RecorderLoad()
        self._on_exit = ExitStack()

    @classmethod
    def create(cls, path: Path | str, metadata: Mapping[str, Any] | None = None, *, sync_steps: bool = False) -> Self:
        """Make a store in a new or empty directory and opens it for writing.

        If a `with` block of the new store fails before anything is recorded, the store goes again.

        Args:
            path: The directory.
            metadata: Facts about all that will be in it; JSON values.
            sync_steps: Have every recorded step on the disk before the next is written, so that even a power cut loses
                only those that wait; without it, a power cut loses the running episode. A killed process loses nothing
                that was written either way.

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
        with writing(path), ExitStack() as on_error:
            new = NewDirectory(path)
            path.mkdir(parents=True, exist_ok=True)
            if not (path / LOCK).exists():
                _check_unused(path)  # before the lock file is made, so that a folder that is not ours stays as it was
            lock = Lock(path / LOCK)
            on_error.callback(lock.close)
            _check_unused(path)
            on_error.push(new.removed_on_error(lambda: False))
            for name in (EPISODES, PARTIAL):
                (path / name).mkdir(exist_ok=True)
            replace_file(path / STORE_HEAD, [head])  # last: from now on it is a store
            sync_directory(path.absolute().parent)
            store = cls(path, given, lock, sync_steps)
            store._on_exit.push(new.removed_on_error(lambda: store._begun))
            on_error.pop_all()
        return store

    @classmethod
    def open(
        cls, path: Path | str, *, write: bool = False, keep_interrupted: bool = True, sync_steps: bool = False
    ) -> Self:
        """Open a store.

        A writer deals with what an interrupted writer left, and reports it in `recovered`: episodes are read back
        from their journals, what is no episode goes to `aside`. A reader sees finished episodes only.

        Args:
            path: Its directory.
            write: Whether to be the writer.
            keep_interrupted: Whether an episode that was cut short by the interruption shall be part of the store, as a
                truncated one with `interrupted` in its metadata, or go to `aside`, because it will be played again.
            sync_steps: As for `create`.

        Raises:
            RunDirectoryError: if another process writes to it, or it cannot be written.
            DataError: if it is not an episode store of this version, or an episode in it cannot be read.
        """
        path = Path(path)
        head = read_head(path)
        with writing(path / LOCK):
            lock = Lock(path / LOCK) if write else None
        store = cls(path, head["metadata"], lock, sync_steps)
        try:
            store._scan()
            if write:
                with writing(path / PARTIAL):
                    (path / PARTIAL).mkdir(exist_ok=True)  # a copy may lack it, as it is empty
                store._recover(keep_interrupted)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open_or_create(cls, path: Path | str, metadata: Mapping[str, Any], *, keep_interrupted: bool = True) -> Self:
        """Open the store that is there for writing, or makes one; all as for `open` and `create`."""
        if (Path(path) / STORE_HEAD).exists():
            return cls.open(path, write=True, keep_interrupted=keep_interrupted)
        return cls.create(path, metadata)

    def close(self) -> None:
        """Let go of the lock, so that another process may write. What is being recorded stays in its journal."""
        if self._recording is not None:
            self._recording[1].close()
            self._recording = None
        if self._lock is not None:
            self._lock.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; after an error, remove a new store in which nothing was recorded."""
        with closing(self):
            self._on_exit.__exit__(kind, error, trace)

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self._rows)

    @property
    def load(self) -> RecorderLoad:
        """Load of the disk by the newest recorded episode."""
        return self._recording[1].load if self._recording is not None else self._load

    def ids(self) -> list[str]:
        """Episode ids in the order of writing."""
        return list(self._rows)

    def summaries(self) -> list[EpisodeSummary]:
        """One row per episode in the order of writing, without reading any array."""
        return list(self._rows.values())

    def begin(self, episode_id: str, metadata: Mapping[str, Any] | None = None) -> None:
        """Start to record an episode step by step; `append` makes it part of the store.

        An episode that was begun and not appended is recovered, as `open` would.

        Raises:
            DataError: if the id is already taken.
            RunDirectoryError: if the store is open for reading only, or cannot be written.
        """
        self._check_new(episode_id)
        if self._recording is not None:
            self._recording[1].close()
            self._recording = None
            self._recover(keep_interrupted=True)
        path = self.path / PARTIAL / f"{self._next_position():06d}{JOURNAL_SUFFIX}"
        journal = JournalWriter(path, episode_id, metadata or {}, sync=self._sync_steps)
        self._recording = episode_id, StepRecorder(journal)

    def abandon(self) -> None:
        """Set aside the episode that is being recorded, because it will be played again."""
        if self._recording is not None:
            self._recording[1].close()
            self._recording = None
            self._recover(keep_interrupted=False)

    def record(self, step: Step) -> None:
        """Take a step of the episode begun, and returns at once: it is written by another thread.

        What goes wrong with writing is raised by `append`; `load` shows whether the disk keeps up.

        Raises:
            StepOrderError: if no episode was begun.
        """
        if self._recording is None:
            raise StepOrderError("no episode is being recorded; begin() one first")
        self._recording[1].add(step)

    def append(self, episode: Episode) -> None:
        """Write an episode; when this returns it is on the disk, and before that it is not in the store at all.

        Raises:
            DataError: if the id is already taken, the metadata are not JSON values, the episode has no end, or another
                one was begun.
            RunDirectoryError: if the store is open for reading only, or cannot be written. Other episodes are unharmed.
                If only the journal could not be written, this episode is stored before that is raised.
        """
        self._check_new(episode.episode_id)
        if self._recording is not None and self._recording[0] != episode.episode_id:
            raise DataError(f"{self.path}: {self._recording[0]} is being recorded; append that before others")
        if not episode.ended:
            raise DataError(
                f"{self.path}: {episode.episode_id} ends neither terminated nor truncated; set truncated in its last "
                "step"
            )
        content = encode(episode)
        recorder = self._recording[1] if self._recording is not None else None
        if recorder is not None:
            recorder.finish(episode)
            self._load, self._recording = recorder.load, None
        self._write(episode, content)
        if recorder is not None:
            with writing(recorder.journal.path):
                recorder.journal.path.unlink(missing_ok=True)
                if recorder.error is not None:
                    raise recorder.error

    def adopt(self, other: EpisodeStore, episode_id: str) -> None:
        """Append an episode of another store, its file byte for byte.

        Raises:
            DataError: if the id is already taken, or the episode cannot be read.
            RunDirectoryError: as for `append`.
        """
        self._check_new(episode_id)
        self._write(other.read(episode_id), other._content(episode_id)[1])

    def read(self, episode_id: str, *, rewards: str | None = None) -> Episode:
        """One episode, every byte of it checked.

        Args:
            episode_id: Which.
            rewards: Name of the overlay to take the rewards from; None takes those recorded.

        Raises:
            DataError: if there is no such episode or overlay, or a file is damaged.
        """
        path, content = self._content(episode_id)
        try:
            episode = decode(content)
        except DataError as error:
            raise DataError(f"{path}: episode {episode_id} cannot be read: {error}; {MOVE_OUT}") from error
        if rewards is None:
            return episode
        return read_overlay(self.path, rewards, fingerprint(content)).over(episode)

    def sources(self, episode_id: str) -> np.ndarray:
        """Return who was in control of each step of an episode (`in_control`), without reading its frames.

        Raises:
            DataError: if there is no such episode, or its file is damaged.
        """
        path, content = self._content(episode_id)
        try:
            return decode_sources(content)
        except DataError as error:
            raise DataError(f"{path}: episode {episode_id} cannot be read: {error}; {MOVE_OUT}") from error

    def episodes(self, *, rewards: str | None = None) -> Iterator[Episode]:
        """All episodes in the order of writing, one in memory at a time; `rewards` as in `read`."""
        for episode_id in self.ids():
            yield self.read(episode_id, rewards=rewards)

    def fingerprint(self, episode_id: str) -> str:
        """Return a fingerprint of the recorded data, which differs for what was recorded anew under the same id.

        Raises:
            DataError: if there is no such episode.
        """
        return fingerprint(self._content(episode_id)[1])

    def fingerprints(self, known: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the fingerprint of each episode, by its id in the order of writing.

        Those that this writer wrote are not read again; they are of the bytes that it wrote.

        Args:
            known: Fingerprints that were taken earlier, whose episodes need not be read.

        Raises:
            DataError: if an episode cannot be read.
        """
        known = {**(known or {}), **self._written}
        return {name: known[name] if name in known else self.fingerprint(name) for name in self._rows}

    def size(self, episode_id: str) -> int:
        """Bytes that an episode takes on the disk.

        Raises:
            DataError: if there is no such episode.
        """
        return self._file(self._row(episode_id)).stat().st_size

    def set_aside(self, episode_ids: Sequence[str], reason: str) -> Path | None:
        """Move episodes to `aside/<n>/`, e.g. those newer than a resumed checkpoint.

        Returns:
            The folder, None if there was nothing to move. Nothing is deleted; moved back, they are part of the store
            again.

        Raises:
            DataError: if there is no such episode.
            RunDirectoryError: if the store is open for reading only, or cannot be written; what was not moved stays.
        """
        self._check_writable()
        leaving = [self._row(episode_id) for episode_id in episode_ids]
        if not leaving:
            return None
        try:  # newest first, so that an interruption leaves no gap
            return move_aside(self.path, [self._file(row) for row in reversed(leaving)], reason)
        finally:
            for row in leaving:
                if not self._file(row).exists():
                    del self._rows[row.episode_id]
                    self._written.pop(row.episode_id, None)

    @property
    def _begun(self) -> bool:
        """Whether it holds an episode, a part of one, or the record (`*.jsonl`) of what people did."""
        parts = (*(self.path / PARTIAL).glob("*"), *self.path.glob("*.jsonl"))
        return bool(self._rows or parts) or (self.path / ASIDE).exists()

    def _scan(self) -> None:
        """List the episodes."""
        try:
            files = sorted((self.path / EPISODES).iterdir())
        except OSError as error:
            raise DataError(f"{self.path}: cannot be listed: {error}") from error
        for file in files:
            self._add(read_summary(file))

    def _recover(self, keep_interrupted: bool) -> None:
        """Deals with what an interrupted writer left behind."""
        try:
            files = sorted((self.path / PARTIAL).iterdir(), key=lambda file: (file.suffix == JOURNAL_SUFFIX, file))
        except OSError as error:
            raise DataError(f"{self.path}: cannot be listed: {error}") from error
        for file in files:
            leftover = examine(file, lambda name: self.read(name) if name in self._rows else None)
            where = str(file.relative_to(self.path))
            done = f"{self.path}: the writer was interrupted; {where} {leftover.report}"
            episode = leftover.episode
            if episode is not None and (leftover.redundant or keep_interrupted):
                self._write(episode, encode(episode))
                done += f"; it is episode {len(self) - 1} of the store"
            with writing(file):
                if leftover.redundant:
                    file.unlink()
                else:
                    target = move_aside(self.path, [file], f"the writer was interrupted; this {leftover.report}")
                    if episode is not None and not keep_interrupted:
                        write_synced(target / f"{file.stem}.zarr.zip", [encode(episode)])
                        done += f"; as an episode it lies in {target}"
                    done += f"; moved to {target}"
            self.recovered.append(done)

    def _write(self, episode: Episode, content: bytes) -> None:
        position = self._next_position()
        partial, final = self.path / PARTIAL / file_name(position), self.path / EPISODES / file_name(position)
        with writing(final):
            try:
                write_synced(partial, [content])
                os.rename(partial, final)
                sync_directory(final.parent)
            except OSError:
                partial.unlink(missing_ok=True)  # ours, incomplete, and the disk may be full
                raise
        self._add(EpisodeSummary(position, episode.episode_id, len(episode), dict(episode.metadata)))
        self._written[episode.episode_id] = fingerprint(content)

    def _content(self, episode_id: str) -> tuple[Path, bytes]:
        path = self._file(self._row(episode_id))
        try:
            return path, read_regular(path)
        except OSError as error:
            raise DataError(f"{path}: episode {episode_id} cannot be read: {error}; {MOVE_OUT}") from error

    def _row(self, episode_id: str) -> EpisodeSummary:
        if episode_id not in self._rows:
            held = f"from {self.ids()[0]} to {self.ids()[-1]}" if self._rows else ""
            raise DataError(f"{self.path}: no episode {episode_id!r}; it holds {len(self)} {held}".rstrip())
        return self._rows[episode_id]

    def _add(self, row: EpisodeSummary) -> None:
        if row.episode_id in self._rows:
            places = f"{file_name(self._rows[row.episode_id].position)} and {file_name(row.position)}"
            raise DataError(f"{self.path / EPISODES}: {places} are both episode {row.episode_id}; {MOVE_OUT}")
        self._rows[row.episode_id] = row

    def _file(self, row: EpisodeSummary) -> Path:
        return self.path / EPISODES / file_name(row.position)

    def _next_position(self) -> int:
        return 1 + max((row.position for row in self._rows.values()), default=-1)

    def _check_new(self, episode_id: str) -> None:
        self._check_writable()
        if episode_id in self._rows:
            raise DataError(f"{self.path}: already holds episode {episode_id}; ids are unique in a store")

    def _check_writable(self) -> None:
        if self._lock is None or not self._lock.held:
            raise RunDirectoryError(f"{self.path}: closed, or open for reading only; open it with write=True")


def _check_unused(path: Path) -> None:
    """Refuse a directory that holds anything but the beginnings of a store."""
    names = {entry.name for entry in path.iterdir()}
    if STORE_HEAD in names:
        raise RunDirectoryError(f"{path}: already holds an episode store; choose another path")
    if foreign := sorted(names - {LOCK, EPISODES, PARTIAL, f".{STORE_HEAD}.tmp"}):
        raise RunDirectoryError(f"{path}: not empty: {foreign[:5]}; choose another path")
