"""Verification of every invariant of an episode store; a repair moves aside what violates one.

Each episode is decoded once and let go, in several processes if wanted, so that memory does not grow with the store.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robot_rl.data.schema import IMAGE_PREFIX, Episode, Source
from robot_rl.data.store.codec import decode
from robot_rl.data.store.layout import (
    EPISODES,
    FORMAT,
    LOCK,
    OVERLAYS,
    PARTIAL,
    STORE_HEAD,
    VERSION,
    move_aside,
    position_of,
    read_head,
)
from robot_rl.data.store.recovery import examine
from robot_rl.data.store.rename_ids import rename_episodes
from robot_rl.data.store.reward_overlays import overlay_fingerprints, overlay_names, read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.system.atomic_file import replace_file, writing
from robot_rl.system.checked_json import parse_json
from robot_rl.system.directory_lock import Lock
from robot_rl.system.regular_file import read_regular


@dataclass(frozen=True)
class Violation:
    """Something in a store that must not be.

    Attributes:
        file: Below the store.
        episode_id: Of the episode, None where it is not known.
        field: Column or property that is wrong.
        problem: What is wrong with it.
    """

    file: str
    episode_id: str | None
    field: str
    problem: str


@dataclass(frozen=True)
class Verdict:
    """Results of a verification.

    Attributes:
        episodes: How many episodes were checked.
        violations: What must not be.
        leftovers: What an interrupted writer, or one that is at work now, has in `partial`; no violation.
        repaired: What was done about it, one sentence each.
    """

    episodes: int
    violations: list[Violation]
    leftovers: list[str]
    repaired: list[str] = field(default_factory=list)


class _Checked(NamedTuple):
    """What remains of an episode that was checked.

    Attributes:
        name: Its file, below the store.
        episode_id: None if it cannot be read.
        columns: Type and shape of a row of each column, as JSON.
        violations: What must not be.
    """

    name: str
    episode_id: str | None
    columns: str
    violations: tuple[Violation, ...]


LARGEST_REWARD = 1e6
"""No honest reward is larger; one that is would end all learning."""
FEW = 32
"""Episodes that one process checks before others would be ready to help."""


def verify(
    path: Path, *, jobs: int = 1, on_episode: Callable[[int, int], object] = lambda done, total: None
) -> Verdict:
    """Read everything in a store and check it.

    Args:
        path: The store.
        jobs: Processes that decode episodes; more than one needs a main module that can be imported again.
        on_episode: Called after each with the number of those checked, and of all.

    Raises:
        DataError: if it is a store of another version, or cannot be listed.
    """
    violations: list[Violation] = []
    try:
        read_head(path)
    except DataError as error:
        if not _head_is_damaged(path):
            raise
        violations.append(Violation(STORE_HEAD, None, "head", str(error)))
    episodes: dict[str, _Checked] = {}
    files = _files(path / EPISODES)
    for done, checked in enumerate(_check_all(files, jobs), start=1):
        on_episode(done, len(files))
        twin = episodes.get(checked.episode_id or "")
        if checked.episode_id is None or twin is None:
            violations += checked.violations
        else:
            problem = f"the same as that of {twin.name}"
            violations.append(Violation(checked.name, checked.episode_id, "episode_id", problem))
            continue
        if checked.episode_id is not None:
            episodes[checked.episode_id] = checked
    violations += _unlike_the_others(list(episodes.values()))
    violations += _overlay_violations(path)
    leftovers = []
    for file in _files(path / PARTIAL):
        try:
            leftover = examine(file, lambda name: _read(path, episodes.get(name)))
            leftovers.append(f"{PARTIAL}/{file.name} {leftover.report}")
        except DataError as error:
            violations.append(Violation(f"{PARTIAL}/{file.name}", None, "journal", str(error)))
    return Verdict(len(episodes), violations, leftovers)


def repair(
    path: Path, *, jobs: int = 1, on_episode: Callable[[int, int], object] = lambda done, total: None
) -> Verdict:
    """Verify, move the files with violations aside, and recover what an interrupted writer left behind.

    An episode with nothing but an id that is not valid any more gets another one.

    Args:
        path: The store.
        jobs: See `verify`.
        on_episode: See `verify`.

    Raises:
        DataError: if it is a store of another version, or cannot be listed.
        RunDirectoryError: if another process writes to it, or it cannot be written.
    """
    done = []
    with Lock(path / LOCK):
        verdict = verify(path, jobs=jobs, on_episode=on_episode)
        if any(violation.file == STORE_HEAD for violation in verdict.violations):
            target = move_aside(path, [path / STORE_HEAD], "damaged")
            head = json.dumps({"format": FORMAT, "version": VERSION, "metadata": {}}).encode()
            with writing(path / STORE_HEAD):
                replace_file(path / STORE_HEAD, [head])
            done.append(f"moved {STORE_HEAD} to {target} and made a new one; the store's metadata are lost")
        renamed = rename_episodes(path, sorted({violation.file for violation in verdict.violations}))
        done += renamed
        left = verify(path, jobs=jobs).violations if renamed else verdict.violations  # what else is wrong with these
        for name in sorted({violation.file for violation in left} - {STORE_HEAD}):
            problems = [f"{v.field}: {v.problem}" for v in left if v.file == name]
            done.append(f"moved {name} to {move_aside(path, [path / name], '; '.join(problems))}")
        for name in (EPISODES, PARTIAL):
            with writing(path / name):
                (path / name).mkdir(exist_ok=True)
    with EpisodeStore.open(path, write=True) as store:
        done += store.recovered
        return Verdict(len(store), verdict.violations, verdict.leftovers, done)


def _check_all(files: Sequence[Path], jobs: int) -> Iterator[_Checked]:
    """Yield what remains of each file, in their order."""
    if jobs == 1 or len(files) <= FEW:
        yield from map(_check_file, files)
        return
    context = multiprocessing.get_context("spawn")  # a fork of a process with threads may stand still
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        with _interrupts_held():  # from the processes that start here, which would print a traceback each
            results = pool.map(_check_file, files, chunksize=8)
        yield from results


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back from this thread, and for good from the processes that it starts meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _check_file(file: Path) -> _Checked:
    name = f"{EPISODES}/{file.name}"
    try:
        position_of(file.name)
    except DataError as error:
        return _Checked(name, None, "", (Violation(name, None, "name", str(error)),))
    try:
        episode = decode(read_regular(file))
    except (OSError, DataError) as error:
        return _Checked(name, None, "", (Violation(name, None, "file", str(error)),))
    columns = {key: f"{column.dtype}{column.shape[1:]}" for key, column in episode.observations.items()}
    columns["action"] = f"{episode.action.dtype}{episode.action.shape[1:]}"
    complaints = (Violation(name, episode.episode_id, *complaint) for complaint in check_episode(episode))
    return _Checked(name, episode.episode_id, json.dumps(columns, sort_keys=True), tuple(complaints))


def _read(path: Path, checked: _Checked | None) -> Episode | None:
    return None if checked is None else decode(read_regular(path / checked.name))


def check_episode(episode: Episode) -> Iterator[tuple[str, str]]:
    """Field and problem of each invariant that an episode violates, beyond those that `Episode` insists on."""
    fixed = {"action": "float32", "action_policy": "float32", "source": "int8", "reward": "float32"}
    fixed |= {"terminated": "bool", "truncated": "bool", "stamp_obs": "int64", "stamp_action": "int64"}
    for name, dtype in fixed.items():
        if (found := getattr(episode, name).dtype) != dtype:
            yield name, f"is {found}, must be {dtype}"
    if episode.action.ndim != 2 or episode.action.shape != episode.action_policy.shape:
        yield "action_policy", f"shape {episode.action_policy.shape}, action has {episode.action.shape}"
    proposals = () if episode.action_base is None else ("action_base",)
    for name in ("action", "action_policy", *proposals):
        if (size := np.abs(getattr(episode, name)).max(initial=0.0)) > 1.0:
            yield name, f"up to {size:.6g}, must lie in [-1, 1]"
    if not episode.ended:
        yield "truncated", "the episode ends neither terminated nor truncated"
    if (largest := np.abs(episode.reward).max(initial=0.0)) > LARGEST_REWARD:
        yield "reward", f"up to {largest:.6g}, must be within {LARGEST_REWARD:g}"
    if unknown := sorted(set(episode.source.tolist()) - set(Source)):
        yield "source", f"values {unknown}, valid: {[int(source) for source in Source]}"
    if episode.arm_sources is not None:
        if episode.arm_sources.dtype != np.int8:
            yield "arm_sources", f"is {episode.arm_sources.dtype}, must be int8"
        if len(names := episode.facts.arms) != (arms := episode.arm_sources.shape[1]):
            yield "arm_sources", f"is of {arms} arms, and the facts name {', '.join(names) or 'none'}"
    for name in ("stamp_obs", "stamp_action"):
        if len(late := np.flatnonzero(np.diff(getattr(episode, name)) <= 0)):
            yield name, f"does not increase at row {late[0] + 1}"
    for key, column in episode.observations.items():
        if key.startswith(IMAGE_PREFIX) and (column.dtype != np.uint8 or column.ndim != 4):
            yield key, f"is {column.dtype} {column.shape}, must be uint8 (T + 1, height, width, channels)"
        elif column.dtype.kind == "f" and len(
            bad := np.flatnonzero(~np.isfinite(column.reshape(len(column), -1)).all(1))
        ):
            yield key, f"has a NaN or an infinity in row {bad[0]}"


def _unlike_the_others(episodes: Sequence[_Checked]) -> Iterator[Violation]:
    """Episodes with other columns than most have: nothing could be learned from all of them together."""
    layouts: dict[str, list[_Checked]] = {}
    for checked in episodes:
        layouts.setdefault(checked.columns, []).append(checked)
    if len(layouts) < 2:
        return
    usual = max(layouts, key=lambda layout: len(layouts[layout]))
    for layout, odd in layouts.items():
        mine, theirs = json.loads(layout), json.loads(usual)
        differing = sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))
        for checked in odd if layout != usual else []:
            for key in differing:
                found, expected = mine.get(key, "missing"), theirs.get(key, "missing")
                yield Violation(checked.name, checked.episode_id, key, f"is {found}, in most other episodes {expected}")


def _overlay_violations(path: Path) -> Iterator[Violation]:
    for name in overlay_names(path):
        for fingerprint in sorted(overlay_fingerprints(path, name)):
            try:
                read_overlay(path, name, fingerprint)
            except DataError as error:
                yield Violation(f"{OVERLAYS}/{name}/{fingerprint}.zip", None, "file", str(error))


def _head_is_damaged(path: Path) -> bool:
    """Return whether `store.json` is a file that no version wrote, rather than missing or of another version."""
    with contextlib.suppress(OSError, ValueError):
        head = parse_json(read_regular(path / STORE_HEAD))
        known = isinstance(head, dict) and isinstance(head.get("version"), int) and isinstance(head.get("format"), str)
        return not known or (head["format"], head["version"]) == (FORMAT, VERSION)
    return (path / STORE_HEAD).is_file() and (path / EPISODES).is_dir()


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DataError(f"{folder}: cannot be listed: {error.strerror}") from error
