"""Puts stores together, takes them apart, and takes episodes out of them. Nothing is deleted, no source is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_rl.data.episode_facts import CopiedFrom
from robot_rl.data.schema import LONGEST_ID
from robot_rl.data.store.layout import STORE_HEAD
from robot_rl.data.store.operator_labels import EVERY_STEP
from robot_rl.data.store.reward_overlays import OverlayWriter, overlay_fingerprints, overlay_names, read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.data.store.summary import EpisodeSummary
from robot_rl.errors import DataError, RunDirectoryError
from robot_rl.system.build_aside import build_aside

_ROOM = 20
"""Letters that the end of a new id may have: the number of a store, and what tells twins apart."""


@contextmanager
def whole_store(out: Path, metadata: Mapping[str, Any]) -> Iterator[EpisodeStore]:
    """Make a store that appears at `out` only when the block has ended without error; see `build_aside`.

    Raises:
        RunDirectoryError: if `out` is not empty, another process is building it, or it cannot be written.
        DataError: if the metadata are not JSON values.
    """
    if (out / STORE_HEAD).exists():
        raise RunDirectoryError(f"{out}: already holds an episode store; choose another path")
    with build_aside(out) as path, EpisodeStore.create(path, metadata) as store:
        yield store


def copy_episodes(
    source: EpisodeStore,
    target: EpisodeStore,
    names: Mapping[str, str],
    *,
    on_episode: Callable[[], object] = lambda: None,
) -> int:
    """Copy episodes with their overlays; returns how many.

    Args:
        source: Where they are.
        target: Where they go.
        names: Id of each, and the id that it shall have there. It remembers another one as `renamed_from`.
        on_episode: Called after each.

    Raises:
        DataError: if an id is taken there, or an episode cannot be read.
        RunDirectoryError: if the target cannot be written.
    """
    labelled = {name: overlay_fingerprints(source.path, name) for name in overlay_names(source.path)}
    count = 0
    for episode_id, new_id in names.items():
        episode = source.read(episode_id)
        mark = source.fingerprint(episode_id)
        if new_id == episode_id:
            target.adopt(source, episode_id)
        else:
            origin = CopiedFrom(
                store=str(source.path.absolute()), episode_id=episode_id, fingerprint=mark, rewards=None
            )
            metadata = episode.facts.updated(renamed_from=episode_id, copied_from=origin).metadata
            episode = replace(episode, episode_id=new_id, metadata=metadata)
            target.append(episode)
        for name in (name for name, marks in labelled.items() if mark in marks):
            overlay = read_overlay(source.path, name, mark)
            with OverlayWriter(target.path, name, overlay.provenance) as writer:
                writer.write(episode, target.fingerprint(new_id), overlay.reward, terminated=overlay.terminated)
        count += 1
        on_episode()
    return count


def merge(
    sources: Sequence[Path],
    out: Path,
    *,
    rename: bool = False,
    on_episode: Callable[[], object] = lambda: None,
) -> int:
    """Make a store with the episodes of all `sources`, in their order; return their number.

    That every step has a label holds for the new one if it holds for all, so that no label of a whole episode replaces
    them. Other facts of the stores are in `merged_from`.

    Args:
        sources: Stores of one task.
        out: Directory of the new store.
        rename: Give an episode whose id is taken the id `<id>@<number of its store>`, with a `+` if that is taken, too.
        on_episode: Called after each.

    Raises:
        DataError: if the stores are of different tasks, an id is in two of them and `rename` is off, or one cannot be
            read. Found before anything is written, except for damage.
        RunDirectoryError: if `out` cannot be written.
    """
    with ExitStack() as stack:
        stores = [stack.enter_context(EpisodeStore.open(path)) for path in sources]
        if len(tasks := {str(store.metadata.get("task")) for store in stores}) > 1:
            raise DataError(f"the stores are of different tasks: {', '.join(sorted(tasks))}; merge those of one task")
        first: dict[str, int] = {}  # number of the store that an id stays with
        for number, store in enumerate(stores):
            for episode_id in store.ids():
                if episode_id in first and not rename:
                    other = stores[first[episode_id]].path
                    raise DataError(f"{other} and {store.path} both hold {episode_id}; --rename gives one a new id")
                first.setdefault(episode_id, number)
        common = {
            key: value
            for key, value in stores[0].metadata.items()
            if key in ("task", *EVERY_STEP) and all(store.metadata.get(key) == value for store in stores)
        }
        origins = [{**store.metadata, "path": str(store.path.absolute()), "episodes": len(store)} for store in stores]
        facts = {**common, "merged_from": origins}
        taken = set(first)
        names = [{name: _new_name(name, n, first[name], taken) for name in s.ids()} for n, s in enumerate(stores)]
        target = stack.enter_context(whole_store(out, facts))
        for store, new_names in zip(stores, names, strict=True):
            copy_episodes(store, target, new_names, on_episode=on_episode)
        return len(target)


def _new_name(name: str, number: int, stays_with: int, taken: set[str]) -> str:
    """Return the id of an episode in the merged store, and take it."""
    if number == stays_with:
        return name
    new = f"{name[: LONGEST_ID - _ROOM]}@{number}"
    while new in taken:
        new += "+"
    taken.add(new)
    return new


def split(source: Path, out: Path, parts: Mapping[str, float], *, seed: int) -> dict[str, int]:
    """Make stores `out/<part>` that share the episodes of a store at random; return the number of each.

    Args:
        source: The store.
        out: Directory of the new stores; it appears with all of them.
        parts: Share of each; they add up to 1.
        seed: The draw follows from it.

    Raises:
        DataError: if the shares do not add up to 1, or the store cannot be read.
        RunDirectoryError: if `out` cannot be written.
    """
    if abs(sum(parts.values()) - 1.0) > 1e-6 or min(parts.values()) < 0:
        raise DataError(f"the shares {dict(parts)} must be at least 0 and add up to 1")
    with EpisodeStore.open(source) as store, build_aside(out) as path:
        ids = store.ids()
        bounds = np.round(np.cumsum([0.0, *parts.values()]) * len(ids)).astype(int)
        drawn = np.random.default_rng(seed).permutation(len(ids))
        for number, part in enumerate(parts):
            chosen = [ids[index] for index in sorted(drawn[bounds[number] : bounds[number + 1]])]
            origin = {"path": str(source.absolute()), "part": part, "seed": seed, "episodes": len(chosen)}
            facts = {**store.metadata, "split_from": origin}
            with EpisodeStore.create(path / part, facts) as target:
                copy_episodes(store, target, dict(zip(chosen, chosen, strict=True)))
    return {part: int(bounds[number + 1] - bounds[number]) for number, part in enumerate(parts)}


def prune(path: Path, unwanted: Callable[[EpisodeSummary], bool], reason: str) -> tuple[list[str], Path | None]:
    """Take episodes out of a store; returns their ids, and the folder below `aside` where they lie now.

    Raises:
        DataError: if the store cannot be read.
        RunDirectoryError: if another process writes to it, or it cannot be written.
    """
    with EpisodeStore.open(path, write=True) as store:
        ids = [row.episode_id for row in store.summaries() if unwanted(row)]
        return ids, store.set_aside(ids, reason)
