"""The store of labels, beside the episodes that they are about. Answers have a content address: none is paid for twice.

    <store>/labels/labels.sqlite    answers by key, who gave them, and which labels refer to them
    <store>/labels/<name>.lock      held by the one labeller of that name
    <store>/labels/<name>.calibration.json

SQLite keeps it whole: when `add` returns the label is on the disk, and a killed labeller leaves what it had added.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from robot_rl.data.store.reward_overlays import check_overlay_name
from robot_rl.errors import DataError, RunDirectoryError, UnknownNameError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_migration import VERSION, add_server_url
from robot_rl.reward.query import QueryKind, canonical
from robot_rl.system.atomic_file import writing
from robot_rl.system.directory_lock import Lock

LABELS, DATABASE = "labels", "labels.sqlite"
_TABLES = """
CREATE TABLE labeller (name TEXT PRIMARY KEY, kind TEXT NOT NULL, identity TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE answer (
    key TEXT PRIMARY KEY, status TEXT NOT NULL, vals TEXT NOT NULL, raw TEXT NOT NULL, details TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, reply_tokens INTEGER NOT NULL, cost REAL NOT NULL, latency REAL NOT NULL,
    attempts INTEGER NOT NULL, identity TEXT NOT NULL, time TEXT NOT NULL
);
CREATE TABLE identity (digest TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE label (name TEXT, subject TEXT, key TEXT NOT NULL REFERENCES answer, PRIMARY KEY (name, subject));
"""
_SELECT = (
    "SELECT label.key, subject, status, vals, raw, details, prompt_tokens, reply_tokens, cost, latency, attempts, time "
    "FROM label JOIN answer USING (key) WHERE name = ?"
)


@dataclass(frozen=True)
class Label:
    """One label.

    Attributes:
        key: Content address of the answer.
        subject: The clips that it is about, as `Clip.subject` gives them.
        answer: What came back.
        time: When, ISO 8601 in UTC.
    """

    key: str
    subject: tuple[Mapping[str, Any], ...]
    answer: Answer
    time: str


class LabelStore:
    """The labels of an episode store. Use it in a `with` block or call `close`.

    Args:
        store: Directory of the episode store.
        create: Whether to create it where there are no labels yet.

    Raises:
        DataError: if there are no labels, or their file is damaged or of another version.
        RunDirectoryError: if it cannot be made.
    """

    def __init__(self, store: Path, *, create: bool = False) -> None:
        self._folder, self._path = store / LABELS, store / LABELS / DATABASE
        self._locks: dict[str, Lock] = {}
        if not self._path.exists():
            if not create:
                raise DataError(f"{store}: no labels there; `robot-rl label run` makes some")
            with writing(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
        with self._our_errors():
            self._db = sqlite3.connect(self._path, timeout=60.0, isolation_level=None)
            self._db.execute("PRAGMA synchronous=FULL")
            if self._version() != VERSION:  # whoever reads labels need not be allowed to write, nor wait for who writes
                with self._transaction():
                    self._migrate()

    def calibration_path(self, name: str) -> Path:
        """Return the path of the calibration of the labels of that name."""
        return self._folder / f"{name}.calibration.json"

    def names(self) -> list[str]:
        """Return the names of the labellers."""
        return [name for (name,) in self._rows("SELECT name FROM labeller ORDER BY name")]

    def kind(self, name: str) -> QueryKind:
        """Return the kind of the labels of that name.

        Raises:
            UnknownNameError: if there are none.
        """
        return QueryKind(self._labeller(name)["kind"])

    def identity(self, name: str) -> dict[str, Any]:
        """Return the labeller of that name, and all else that its answers depend on.

        Raises:
            UnknownNameError: if there are none.
        """
        return dict(self._labeller(name)["identity"])

    def trained_on(self, name: str) -> list[str]:
        """Return the episodes that the labeller itself was trained on; they do not show its error."""
        return list(self.identity(name).get("trained_on", ()))

    def settings(self, name: str) -> dict[str, Any]:
        """Return the configuration of the labeller of that name.

        Raises:
            UnknownNameError: if there are none.
        """
        return dict(self._labeller(name)["settings"])

    def begin(self, name: str, kind: QueryKind, identity: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Make this process the one that adds labels of that name.

        Args:
            name: Lower-case letters, digits, `-` and `_`.
            kind: Kind of the labels.
            identity: The labeller, and all else that an answer depends on; JSON values.
            settings: Further facts to keep with the labels; JSON values.

        Raises:
            DataError: if the name cannot be used, or its labels were made in another way.
            RunDirectoryError: if another process adds labels of that name.
        """
        check_overlay_name(name)
        if name not in self._locks:
            self._locks[name] = Lock(self._folder / f"{name}.lock")
        if name in self.names():
            before = self._labeller(name)
            now = {"kind": str(kind), "identity": dict(identity)}
            if differing := _differences({"kind": before["kind"], "identity": before["identity"]}, now):
                raise DataError(
                    f"{self._path}: labels {name!r} were made in another way ({'; '.join(differing)}); "
                    "set it as it was, or choose another --name"
                )
            return
        row = (name, str(kind), canonical(identity), canonical(settings))
        with self._our_errors(), self._transaction():
            self._db.execute("INSERT INTO labeller VALUES (?, ?, ?, ?)", row)

    def has(self, name: str, subject: str) -> bool:
        """Return whether there is a label of that name about `Query.subject`."""
        return bool(self._rows("SELECT 1 FROM label WHERE name = ? AND subject = ?", name, subject))

    def find(self, name: str, subject: str) -> Answer | None:
        """Return the answer in the label of that name about `Query.subject`; None if there is none."""
        for row in self._rows(f"{_SELECT} AND subject = ?", name, subject):
            return _label(row).answer
        return None

    def link(self, name: str, subject: str, key: str) -> bool:
        """Label a subject with an answer that is stored already; return False if it is not."""
        if not self._rows("SELECT 1 FROM answer WHERE key = ?", key):
            return False
        with self._our_errors(), self._transaction():
            self._db.execute("INSERT OR IGNORE INTO label VALUES (?, ?, ?)", (name, subject, key))
        return True

    def add(self, name: str, subject: str, key: str, answer: Answer, identity: Mapping[str, Any]) -> None:
        """Add a label; it is on the disk when this returns.

        Raises:
            RunDirectoryError: if this process did not `begin` that name, or it cannot be written.
        """
        if name not in self._locks:
            raise RunDirectoryError(f"{self._path}: begin {name!r} before adding to it")
        who = canonical(identity)
        digest = hashlib.sha256(who.encode()).hexdigest()
        with self._our_errors(), self._transaction():
            self._db.execute("INSERT OR IGNORE INTO identity VALUES (?, ?)", (digest, who))
            self._db.execute(
                "INSERT OR IGNORE INTO answer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    key,
                    str(answer.status),
                    json.dumps(answer.values),
                    answer.raw,
                    canonical(dict(answer.details)),
                    answer.prompt_tokens,
                    answer.reply_tokens,
                    answer.cost,
                    answer.latency,
                    answer.attempts,
                    digest,
                    datetime.now(UTC).isoformat(timespec="milliseconds"),
                ),
            )
            self._db.execute("INSERT OR IGNORE INTO label VALUES (?, ?, ?)", (name, subject, key))

    def labels(self, name: str) -> Iterator[Label]:
        """Yield all labels of that name, in the order in which they were added.

        Raises:
            UnknownNameError: if there are none.
        """
        self._labeller(name)
        yield from map(_label, self._rows(f"{_SELECT} ORDER BY label.rowid", name))

    def close(self) -> None:
        """Close the file and release the locks; may be called twice."""
        self._db.close()
        for lock in self._locks.values():
            lock.close()
        self._locks.clear()

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the store."""
        self.close()

    def _labeller(self, name: str) -> dict[str, Any]:
        rows = self._rows("SELECT kind, identity, settings FROM labeller WHERE name = ?", name)
        if not rows:
            raise UnknownNameError("labels", name, self.names())
        kind, identity, settings = rows[0]
        return {"kind": kind, "identity": json.loads(identity), "settings": json.loads(settings)}

    def _rows(self, statement: str, *values: str) -> list[Any]:
        with self._our_errors():
            return self._db.execute(statement, values).fetchall()

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _migrate(self) -> None:
        """Make the tables, or bring those of an earlier version up to date."""
        version = self._version()
        if version == 0:
            for statement in _TABLES.split(";")[:-1]:
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version={VERSION}")
        elif version == 1:
            add_server_url(self._db)
        elif version != VERSION:
            raise DataError(f"{self._path}: is version {version}, this program reads {VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:  # commits, or rolls back unless SQLite did so itself
            yield

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        """Translate errors of SQLite into ours."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise RunDirectoryError(
                f"cannot write {self._path}: {error}; check that the disk has room, and that you may write there"
            ) from error
        except sqlite3.DatabaseError as error:
            raise DataError(f"{self._path}: damaged ({error}); move it away to start anew") from error


def _label(row: tuple[Any, ...]) -> Label:
    key, subject, status, values, raw, details, *counts, time = row
    answer = Answer(Status(status), tuple(json.loads(values)), raw, json.loads(details), *counts)
    return Label(key, tuple(json.loads(subject)), answer, time)


def _differences(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in sorted({*before, *now}):
        old, new = before.get(key), now.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += _differences(old, new, prefix="")
        elif old != new:
            found.append(f"{prefix}{key} was {old!r}, is {new!r}")
    return found
