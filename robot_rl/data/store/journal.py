"""The journal of an episode that is being recorded: every step is in a file as soon as it was taken.

    magic | record | record | ...      a record: kind (1 byte), length (4), CRC-32 of kind and payload (4), payload
    HEAD   JSON: version, schema_version, episode_id, metadata, reward_source, layout
    STEP   one row in that layout: the fields of a `Step`, as numpy stores a structured scalar
    JUDGE  before FINAL: who gave the rewards, UTF-8, if it is not who gave that of the first step
    FINAL  one row of which only the observation and its stamp count, then the final metadata as JSON

A raw file, because a step must cost microseconds: appending it to zarr arrays takes a hundred times as long. A writer
that is killed leaves a file that ends anywhere; every whole record before that place is read back.

What step t saw is in record t and what it led to in record t + 1, so that each frame is written once. An episode cut
short after record t therefore comes back with t steps: its newest step is the most that is lost.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.schema import (
    ARMS_COLUMN,
    ARMS_VERSION,
    BASE_COLUMN,
    IMAGE_PREFIX,
    READABLE_VERSIONS,
    SCHEMA_VERSION,
    STATE_PREFIX,
    STEP_COLUMNS,
    Episode,
    Observation,
    Step,
)
from robot_rl.data.store.array_layout import NUMBERS, check_facts
from robot_rl.errors import DataError
from robot_rl.system.checked_json import parse_json
from robot_rl.system.regular_file import read_regular

JOURNAL_VERSION = 1
JOURNAL_SUFFIX = ".journal"
_MAGIC = b"robot_rl journal\n"
_HEAD, _STEP, _FINAL, _JUDGE = 1, 2, 3, 4
_FRAME = struct.Struct("<BII")
_TYPES = {
    "index": np.dtype("<i8"),
    "action": np.dtype("<f4"),
    "action_policy": np.dtype("<f4"),
    "source": np.dtype("i1"),
    "reward": np.dtype("<f4"),
    "terminated": np.dtype("?"),
    "truncated": np.dtype("?"),
    "stamp_action": np.dtype("<i8"),
    "stamp_obs": np.dtype("<i8"),
}
"""Types of the columns that every journal has."""
_RESERVED = (*_TYPES, BASE_COLUMN, ARMS_COLUMN)


class JournalWriter:
    """Write one journal. Not thread-safe; `recorder.py` gives it a thread of its own.

    Args:
        path: The file, made with the first step.
        episode_id: Of the episode.
        metadata: What is known of it before it ends.
        sync: Wait after every record until it is on the disk. A killed process loses nothing either way; this is for
            power cuts.
    """

    def __init__(self, path: Path, episode_id: str, metadata: Mapping[str, Any], *, sync: bool = False) -> None:
        self.path, self._id, self._metadata, self._sync = path, episode_id, dict(metadata), sync
        self._file: int | None = None
        self._row: np.ndarray = np.zeros(0)
        self._bytes = memoryview(b"")  # of the row
        self._count = 0
        self._judge = ""  # of the first step

    def write(self, step: Step) -> None:
        """Append a step.

        Raises:
            OSError: if it cannot be written.
            DataError: if it does not follow the step before, or an array of it has another shape or dtype than before.
        """
        if step.episode_id != self._id or step.index != self._count:
            raise DataError(f"step {step.index} of {step.episode_id} cannot follow {self._count} steps of {self._id}")
        if self._file is None:
            self._judge = step.reward_source
            self._open(step)
        self._fill(step.observation)
        row = self._row
        row["index"], row["stamp_obs"], row["stamp_action"] = step.index, step.stamp_obs, step.stamp_action
        row["action"], row["action_policy"] = step.action, step.action_policy
        row["source"], row["reward"] = int(step.source), step.reward
        row["terminated"], row["truncated"] = step.terminated, step.truncated
        self._fill_base(step.action_base)
        self._fill_arms(step.arm_sources)
        self._append(_STEP, self._bytes)
        self._count += 1

    def finish(self, episode: Episode) -> None:
        """Append what completes the episode: its last observation, its metadata, and who judged it.

        Raises:
            OSError: if it cannot be written.
            DataError: if the episode has another number of steps than were written.
        """
        if len(episode) != self._count:
            raise DataError(f"episode {self._id}: has {len(episode)} steps, the journal {self._count}")
        self._fill({key: column[-1] for key, column in episode.observations.items()})
        self._row["index"], self._row["stamp_obs"] = self._count, episode.stamp_obs[-1]
        self._fill_base(None if episode.action_base is None else episode.action_base[-1])
        if self._count and episode.reward_source != self._judge:
            self._append(_JUDGE, episode.reward_source.encode())
        self._append(_FINAL, self._bytes, self._json(dict(episode.metadata)))

    def close(self) -> None:
        """Close the file; doing it twice is fine."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self, step: Step) -> None:
        if objects := sorted(key for key, value in step.observation.items() if value.dtype.hasobject):
            raise DataError(f"episode {self._id}: observations {objects} are not arrays of numbers")
        layout = np.dtype(
            [
                ("index", "<i8"),
                ("stamp_obs", "<i8"),
                ("stamp_action", "<i8"),
                ("action", "<f4", step.action.shape),
                ("action_policy", "<f4", step.action_policy.shape),
                ("source", "i1"),
                ("reward", "<f4"),
                ("terminated", "?"),
                ("truncated", "?"),
                *([] if step.action_base is None else [(BASE_COLUMN, "<f4", step.action_base.shape)]),
                *([] if step.arm_sources is None else [(ARMS_COLUMN, "i1", step.arm_sources.shape)]),
                *((key, value.dtype, value.shape) for key, value in sorted(step.observation.items())),
            ]
        )
        rows = np.zeros(1, layout)
        self._row, self._bytes = rows[0:1].reshape(()), rows.view(np.uint8).data
        head = {
            "version": JOURNAL_VERSION,
            "schema_version": SCHEMA_VERSION if step.arm_sources is None else ARMS_VERSION,
            "episode_id": self._id,
            "metadata": self._metadata,
            "reward_source": step.reward_source,
            "layout": [[name, layout[name].base.str, list(layout[name].shape)] for name in layout.names or ()],
        }
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        _write_all(self._file, [_MAGIC])
        self._append(_HEAD, self._json(head))

    def _json(self, value: Any) -> bytes:
        try:
            return json.dumps(value, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise DataError(f"episode {self._id}: metadata must be JSON values: {error}") from error

    def _fill(self, observation: Observation) -> None:
        layout = self._row.dtype
        if odd := (set(layout.names or ()) - set(_RESERVED)) ^ observation.keys():
            raise DataError(
                f"episode {self._id}: {sorted(odd)} are not observed at every step; missing at, or since, "
                f"step {self._count}"
            )
        for key, value in observation.items():
            if value.dtype != layout[key].base or value.shape != layout[key].shape:
                raise DataError(
                    f"episode {self._id}: {key} of step {self._count} is {value.dtype} {value.shape}, "
                    f"was {layout[key].base} {layout[key].shape}"
                )
            self._row[key] = value

    def _fill_base(self, proposal: np.ndarray | None) -> None:
        """Note what the base proposed, at every step or at none."""
        if (proposal is not None) != (BASE_COLUMN in (self._row.dtype.names or ())):
            raise DataError(f"episode {self._id}: a base proposed some of the actions up to step {self._count} only")
        if proposal is not None:
            self._row[BASE_COLUMN] = proposal

    def _fill_arms(self, sources: np.ndarray | None) -> None:
        """Note who led each of several arms, at every step or at none."""
        if (sources is not None) != (ARMS_COLUMN in (self._row.dtype.names or ())):
            raise DataError(f"episode {self._id}: some of the steps up to step {self._count} only are of several arms")
        if sources is not None:
            self._row[ARMS_COLUMN] = sources

    def _append(self, kind: int, *payload: bytes | memoryview) -> None:
        if self._file is None:
            raise DataError(f"episode {self._id}: has no steps")
        crc = zlib.crc32(bytes([kind]))
        for part in payload:
            crc = zlib.crc32(part, crc)
        _write_all(self._file, [_FRAME.pack(kind, sum(map(len, payload)), crc), *payload])
        if self._sync:
            os.fdatasync(self._file)


@dataclass(frozen=True)
class Journal:
    """Contents of a journal.

    Attributes:
        episode_id: Of the episode.
        metadata: The final ones if the episode was complete, else those known when it started.
        reward_source: Who gave the rewards.
        rows: The steps, and a last row for the final observation if the episode was complete; structured, shape (R,).
        complete: Whether the episode had ended.
        unread: Bytes after the last whole record; the record being written when the writer was killed, or damage.
    """

    episode_id: str
    metadata: Mapping[str, Any]
    reward_source: str
    rows: np.ndarray = field(repr=False)
    complete: bool
    unread: int

    def __len__(self) -> int:
        """Return the number of steps for an episode."""
        return max(0, len(self.rows) - 1)

    def episode(self) -> Episode:
        """Return the episode; one that had not ended is truncated after the last step with a known outcome.

        An episode that was cut after its last step was journalled, e.g. because the robot was lost, has no end in
        that step; it is truncated there, too.

        Raises:
            DataError: if it is not one, e.g. because no step's outcome is known.
        """
        steps, rows = len(self), self.rows
        fields = set(rows.dtype.names or ())
        columns: dict[str, Any] = {name: rows[name][:steps].copy() for name in STEP_COLUMNS}
        columns["truncated"][-1:] |= ~columns["terminated"][-1:]
        return Episode(
            episode_id=self.episode_id,
            observations={key: rows[key].copy() for key in sorted(fields - set(_RESERVED))},
            stamp_obs=rows["stamp_obs"].copy(),
            reward_source=self.reward_source,
            metadata=self.metadata,
            schema_version=ARMS_VERSION if ARMS_COLUMN in fields else SCHEMA_VERSION,
            action_base=rows[BASE_COLUMN].copy() if BASE_COLUMN in fields else None,
            arm_sources=rows[ARMS_COLUMN][:steps].copy() if ARMS_COLUMN in fields else None,
            **columns,
        )


def read_journal(path: Path) -> Journal | None:
    """Read as much of a journal as is whole, every byte checked; None if not even its head is.

    Raises:
        DataError: if it cannot be opened, or was written by another version.
    """
    try:
        content = memoryview(read_regular(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    kind, payload, position = _record(content, len(_MAGIC))
    if content[: len(_MAGIC)] != _MAGIC or kind != _HEAD:
        return None
    try:
        return _read_records(path, content, parse_json(bytes(payload)), position)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: is no journal of an episode: {error}") from error


def _read_records(path: Path, content: memoryview, head: Mapping[str, Any], position: int) -> Journal:
    """Read the records after the head, which end at `position`.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: if the head is not that of a journal.
    """
    versions = head.get("version"), head.get("schema_version")
    if versions[0] != JOURNAL_VERSION or versions[1] not in READABLE_VERSIONS:
        readable = f"{', '.join(map(str, READABLE_VERSIONS[:-1]))} and {READABLE_VERSIONS[-1]}"
        raise DataError(
            f"{path}: journal version {versions[0]} of schema {versions[1]}, this program reads "
            f"{JOURNAL_VERSION} of schema {readable}; open the store once with the version that wrote it"
        )
    check_facts({**head, "length": 0})
    layout = _layout(head["layout"])
    rows: list[memoryview] = []
    metadata, judge, complete = head["metadata"], head["reward_source"], False
    while not complete:
        kind, payload, after = _record(content, position)
        if kind == _JUDGE:
            judge, position = bytes(payload).decode(), after
            continue
        whole = len(payload) == layout.itemsize if kind == _STEP else kind == _FINAL and len(payload) > layout.itemsize
        if not whole:
            break
        rows.append(payload[: layout.itemsize])
        if kind == _FINAL:
            metadata, complete = parse_json(bytes(payload[layout.itemsize :])), True
            check_facts({**head, "length": 0, "metadata": metadata})
        position = after
    return Journal(
        episode_id=head["episode_id"],
        metadata=metadata,
        reward_source=judge,
        rows=np.frombuffer(b"".join(rows), layout),
        complete=complete,
        unread=len(content) - position,
    )


def _layout(entries: Sequence[tuple[str, str, Sequence[int]]]) -> np.dtype[np.void]:
    """Return the type of a row.

    Raises:
        TypeError, ValueError: if it is not what `JournalWriter` writes.
    """
    layout = np.dtype([(name, dtype, tuple(shape)) for name, dtype, shape in entries])
    for name, dtype in _TYPES.items():
        if name not in (layout.names or ()) or layout[name].base != dtype:
            raise ValueError(f"column {name} is missing, or not {dtype}")
        if len(layout[name].shape) != (name in ("action", "action_policy")):
            raise ValueError(f"column {name} has rows of shape {layout[name].shape}")
    names = layout.names or ()
    if BASE_COLUMN in names and layout[BASE_COLUMN] != layout["action"]:
        raise ValueError(f"column {BASE_COLUMN} is {layout[BASE_COLUMN]}, an action is {layout['action']}")
    if ARMS_COLUMN in names and (layout[ARMS_COLUMN].base != np.int8 or len(layout[ARMS_COLUMN].shape) != 1):
        raise ValueError(f"column {ARMS_COLUMN} is {layout[ARMS_COLUMN]}, not an int8 for each arm")
    for name in layout.names or ():
        known = name in _RESERVED or name.startswith((STATE_PREFIX, IMAGE_PREFIX))
        if not known or layout[name].base.name not in NUMBERS:
            raise ValueError(f"column {name!r:.50} is not of an episode, or not of numbers")
    return layout


def _record(content: memoryview, position: int) -> tuple[int, memoryview, int]:
    """Kind, payload and end of the record at a position; kind 0 if there is no whole one."""
    start = position + _FRAME.size
    if start > len(content):
        return 0, content[:0], position
    kind, length, crc = _FRAME.unpack(content[position:start])
    payload = content[start : start + length]
    if len(payload) < length or zlib.crc32(payload, zlib.crc32(bytes([kind]))) != crc:
        return 0, content[:0], position
    return kind, payload, start + length


def _write_all(file: int, parts: Sequence[bytes | memoryview]) -> None:
    """Write without joining the parts, which would copy the images."""
    written = os.writev(file, parts)
    if written < sum(map(len, parts)):  # a nearly full disk takes a part
        rest = memoryview(b"".join(parts))[written:]
        while rest:
            rest = rest[os.write(file, rest) :]
