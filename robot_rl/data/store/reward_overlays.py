"""Rewards that somebody else gave: a column beside the recorded one, which stays as it was. Readers choose.

    <store>/overlays/<name>/<fingerprint>.zip    `overlay.json` (whose, for which episode) and `reward.npy` (T,) float32
    <store>/overlays/<name>/writer.lock          held by the one labeller of that name
    <store>/overlays/.<name>.tmp/                one that is still being made, and that no reader sees

An overlay belongs to the bytes of an episode's file, by their fingerprint: an episode that was recorded anew under the
same id does not inherit the labels of the old one. Labelling needs no lock of the store, so it goes on while training.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from robot_rl.data.schema import Episode
from robot_rl.data.store.codec import archived, opened
from robot_rl.data.store.layout import LOCK, OVERLAYS
from robot_rl.errors import DataError, RunDirectoryError
from robot_rl.system.atomic_file import replace_file, sync_directory, writing
from robot_rl.system.checked_json import parse_json
from robot_rl.system.directory_lock import Lock
from robot_rl.system.regular_file import read_regular

OVERLAY_VERSION = 1
_FACTS, _REWARD = "overlay.json", "reward.npy"


@dataclass(frozen=True)
class Overlay:
    """One labeller's rewards for one episode.

    Attributes:
        name: Of the labeller, or of this attempt of it.
        episode_id: Of the episode.
        reward: Shape (T,), float32.
        provenance: Where they come from, e.g. model, prompt, date; JSON values.
        terminated: Whether the task was over with the last step, for who gave them; None: as it was recorded.
    """

    name: str
    episode_id: str
    reward: np.ndarray
    provenance: Mapping[str, Any]
    terminated: bool | None = None

    def over(self, episode: Episode) -> Episode:
        """Return the episode with these rewards, their name as the source, and the end that belongs to them.

        Raises:
            DataError: if they are of another number of steps.
        """
        if self.reward.shape != (len(episode),):
            raise DataError(
                f"overlay {self.name!r} of {episode.episode_id}: rewards of shape {self.reward.shape}, "
                f"expected ({len(episode)},)"
            )
        rewarded = replace(episode, reward=self.reward, reward_source=self.name)
        if self.terminated is None:
            return rewarded
        last = np.arange(len(episode)) == len(episode) - 1
        return replace(rewarded, terminated=last & self.terminated, truncated=last & (not self.terminated))


class OverlayWriter:
    """Write one labeller's rewards; one process at a time. Use it in a `with` block or call `close`.

    Args:
        store: Directory of the episode store.
        name: Of the labeller; lower-case letters, digits, `-` and `_`.
        provenance: Where the rewards come from; JSON values.
        whole: Readers see all of it once `finish` is called, and before that nothing. What a killed process left of
            such a one is removed.

    Raises:
        DataError: if the name or the provenance cannot be used, or one that has to be whole is there already.
        RunDirectoryError: if another process labels under this name, or it cannot be written.
    """

    def __init__(self, store: Path, name: str, provenance: Mapping[str, Any], *, whole: bool = False) -> None:
        check_overlay_name(name)
        try:
            json.dumps(dict(provenance), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise DataError(f"overlay {name!r}: provenance must be JSON values: {error}") from error
        self.name, self._provenance, self._place = name, dict(provenance), store / OVERLAYS / name
        self._folder = self._place.with_name(f".{name}.tmp") if whole else self._place
        if whole and overlay_fingerprints(store, name):
            raise DataError(
                f"{self._place}: {name!r} has labelled episodes already; label under another name, or, if it is only "
                "half of one, move that folder out of the store and label again"
            )
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self._folder / LOCK)
        self._unfinished = whole
        if whole:
            for left in self._folder.glob("*.zip"):
                left.unlink()

    def write(self, episode: Episode, fingerprint: str, reward: np.ndarray, *, terminated: bool | None = None) -> None:
        """Add the rewards of an episode; on the disk when this returns.

        Args:
            episode: As recorded.
            fingerprint: Of its file, from `EpisodeStore.fingerprint`.
            reward: Shape (T,).
            terminated: As in `Overlay`.

        Raises:
            DataError: if they do not fit the episode, or this name has labelled it before; labels are not rewritten.
            RunDirectoryError: if they cannot be written, or the writer is closed.
        """
        if not self._lock.held:
            raise RunDirectoryError(f"{self._folder}: closed")
        path = self._folder / f"{fingerprint}.zip"
        if path.exists():
            raise DataError(
                f"{path}: {self.name!r} has labelled {episode.episode_id} already; label under another name"
            )
        values = np.asarray(reward, np.float32)
        Overlay(self.name, episode.episode_id, values, self._provenance).over(episode)
        facts = {
            "version": OVERLAY_VERSION,
            "name": self.name,
            "episode_id": episode.episode_id,
            "fingerprint": fingerprint,
            "terminated": terminated,
            "provenance": self._provenance,
        }
        column = io.BytesIO()
        np.save(column, values)
        with writing(path):
            replace_file(path, [archived([(_FACTS, json.dumps(facts).encode()), (_REWARD, column.getvalue())])])

    def finish(self) -> None:
        """Show readers all that was written; on the disk when this returns.

        Raises:
            RunDirectoryError: if it cannot be written, or the writer is closed.
        """
        if not self._lock.held:
            raise RunDirectoryError(f"{self._folder}: closed")
        if self._unfinished:
            with writing(self._place):
                (self._place / LOCK).unlink(missing_ok=True)  # all that there may be
                self._folder.rename(self._place)
                sync_directory(self._place.parent)
            self._unfinished = False

    def close(self) -> None:
        """Let go of the lock, and remove what should be whole and is not finished; doing it twice is fine."""
        if self._unfinished:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._unfinished = False
        self._lock.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close."""
        self.close()


def check_overlay_name(name: str) -> None:
    """Raise `DataError` if overlays cannot have that name.

    Raises:
        DataError: if they cannot.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", name):
        raise DataError(f"overlay name {name!r}: must consist of lower-case letters, digits, `-` and `_`")


def fingerprint(content: bytes) -> str:
    """Of the file of an episode."""
    return hashlib.sha256(content).hexdigest()[:32]


def overlay_names(store: Path) -> list[str]:
    """Names of the overlays of a store."""
    folder = store / OVERLAYS
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(entry.name for entry in entries if entry.is_dir() and not entry.name.startswith("."))


def overlay_fingerprints(store: Path, name: str) -> set[str]:
    """Fingerprints of the episodes that an overlay has rewards for."""
    return {path.stem for path in (store / OVERLAYS / name).glob("*.zip")}


def read_overlay(store: Path, name: str, of: str) -> Overlay:
    """Return the rewards of the episode with the fingerprint `of`.

    Raises:
        DataError: if there are none under that name, or their file is damaged.
    """
    path = store / OVERLAYS / name / f"{of}.zip"
    if not path.is_file():
        having = [other for other in overlay_names(store) if of in overlay_fingerprints(store, other)]
        raise DataError(f"{store}: no overlay {name!r} for this episode; it has {having or 'none'}")
    try:
        with opened(io.BytesIO(read_regular(path)), "an overlay") as archive:
            facts = parse_json(archive.read(_FACTS))
            reward = np.load(io.BytesIO(archive.read(_REWARD)), allow_pickle=False)
            found = facts["version"], facts["name"], facts["fingerprint"], reward.dtype
            if found != (OVERLAY_VERSION, name, of, np.dtype(np.float32)):
                raise ValueError(f"it is version {found[0]}, overlay {found[1]!r} of {found[2]}, {found[3]}")
            return Overlay(name, facts["episode_id"], reward, facts["provenance"], facts.get("terminated"))
    except (OSError, DataError) as error:
        raise DataError(f"{path}: {error}") from error
