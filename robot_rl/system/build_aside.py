"""A directory that appears under its name only once it is complete."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from robot_rl.errors import RunDirectoryError
from robot_rl.system.atomic_file import sync_directory, writing
from robot_rl.system.directory_lock import Lock

_LOCK, _BUILT = "builder.lock", "built"


@contextlib.contextmanager
def build_aside(out: Path) -> Iterator[Path]:
    """Build a directory beside its place, in `.<name>.unfinished`; it gets the name when the block ends without error.

    Whatever ends the process before leaves nothing under that name. The next call begins anew.

    Args:
        out: The directory; it must not exist, or be empty.

    Yields:
        An empty directory to build in.

    Raises:
        RunDirectoryError: if `out` is not empty, another process is building it, or it cannot be written.
    """
    out = out.absolute()
    _check_new(out)
    aside = out.with_name(f".{out.name}.unfinished")
    built = aside / _BUILT
    with writing(aside):
        aside.mkdir(parents=True, exist_ok=True)
    with Lock(aside / _LOCK), contextlib.ExitStack() as on_exit:
        on_exit.callback(shutil.rmtree, aside, ignore_errors=True)
        with writing(built):
            if built.exists():  # of a process that is no more
                shutil.rmtree(built)
            built.mkdir()
        yield built
        with writing(out):
            _sync_tree(built)
            _check_new(out)
            os.rename(built, out)
            sync_directory(out.parent)


def _check_new(out: Path) -> None:
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise RunDirectoryError(f"{out} is not empty; choose a new or an empty directory")


def _sync_tree(directory: Path) -> None:
    """Have the entries of all directories on the disk; files are synced by who wrote them."""
    for folder, _, _ in os.walk(directory):
        sync_directory(Path(folder))
