"""New ids for episodes of older stores, whose ids held a slash or began with a dot: files are named by ids now."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from robot_rl.data.schema import LONGEST_ID, check_id
from robot_rl.data.store.array_layout import GROUP_FILE
from robot_rl.data.store.codec import archived, decode, members, opened
from robot_rl.data.store.layout import EPISODES, new_aside
from robot_rl.data.store.reward_overlays import (
    OverlayWriter,
    fingerprint,
    overlay_fingerprints,
    overlay_names,
    read_overlay,
)
from robot_rl.data.store.summary import read_summary
from robot_rl.errors import DataError, EpisodeIdError
from robot_rl.system.atomic_file import replace_file, write_synced, writing
from robot_rl.system.checked_json import parse_json
from robot_rl.system.regular_file import read_regular


def rename_episodes(store: Path, names: Sequence[str]) -> list[str]:
    """Give an id to each of these files that nothing but its id keeps from being read; a copy goes to `aside`.

    An episode remembers its old id as `renamed_from` and keeps its overlays. Labels by models, and labels of operators,
    name the old id; label such episodes anew.

    Args:
        store: Directory of the store, under its lock.
        names: Files below it.

    Returns:
        One sentence for each renamed episode.

    Raises:
        RunDirectoryError: if that cannot be written.
    """
    done = []
    taken: set[str] = set()
    for file in sorted((store / EPISODES).glob("*")):
        with contextlib.suppress(DataError):
            taken.add(read_summary(file).episode_id)
    for name in names:
        file = store / name
        try:
            old = read_regular(file)
            before, after, new = _renamed(old, taken)
            episode = decode(new)
        except (OSError, DataError):
            continue  # it is damaged in other ways
        with writing(file):
            copy = new_aside(store, f"the id {before!r} is not valid; {name} has it as {after!r}", [name])
            write_synced(copy / file.name, [old])
            old_mark, new_mark = fingerprint(old), fingerprint(new)
            for overlay_name in overlay_names(store):
                marks = overlay_fingerprints(store, overlay_name)
                if old_mark in marks and new_mark not in marks:
                    overlay = read_overlay(store, overlay_name, old_mark)
                    with OverlayWriter(store, overlay_name, overlay.provenance) as writer:
                        writer.write(episode, new_mark, overlay.reward, terminated=overlay.terminated)
            replace_file(file, [new])
        taken.add(after)
        done.append(f"episode {before!r:.80} is {after!r} now; {name} as it was lies in {copy}")
    return done


def valid_id(wanted: str, taken: Collection[str]) -> str:
    """Return a valid id like the one wanted, and free: what is not allowed becomes `_`, `+` tells twins apart."""
    new = re.sub(r"[/\\]", "_", "".join(letter if letter.isprintable() else "_" for letter in wanted))
    new = re.sub(r"^\.", "_", new[: LONGEST_ID // 2]) or "unnamed"
    while new in taken:
        new += "+"
    return new


def _renamed(content: bytes, taken: Collection[str]) -> tuple[str, str, bytes]:
    """Return the id of an episode's file, a valid one, and the file with that.

    Raises:
        DataError: if the id is valid, or the file damaged.
    """
    with opened(io.BytesIO(content), "an episode") as archive:
        files: dict[str, bytes | memoryview] = dict(members(content, archive))
        group = parse_json(bytes(files[GROUP_FILE]))
        facts = group["attributes"]
        before = facts["episode_id"]
        if not isinstance(before, str):
            raise TypeError("an id is a text")
        try:
            check_id(before)
        except EpisodeIdError:
            after = valid_id(before, taken)
        else:
            raise DataError(f"{before!r} is a valid id")
        facts["episode_id"], facts["metadata"] = after, {**facts["metadata"], "renamed_from": before}
    files[GROUP_FILE] = json.dumps(group).encode()
    return before, after, archived(files.items())  # the same file again after a kill
