"""Files of heads: trees of numbers, strings and tensors."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeVar

import torch

from robot_rl.errors import DataError
from robot_rl.system.atomic_file import replace_file, writing

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ReadFile:
    """A file that was read once: the object in use has this hash, even if the file is replaced meanwhile.

    Attributes:
        path: Of the file.
        content: Its bytes.
    """

    path: Path
    content: bytes

    @property
    def sha256(self) -> str:
        """SHA-256 of the content, in hexadecimal."""
        return hashlib.sha256(self.content).hexdigest()


def write_tree(path: Path, tree: Mapping[str, Any]) -> None:
    """Write a tree of numbers, strings and tensors to a file.

    Raises:
        RunDirectoryError: if that cannot be done.
    """
    content = io.BytesIO()
    torch.save(tree, content)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, [content.getvalue()])


def read_tree(path: Path, make: Callable[[Mapping[str, Any]], T], what: str, cure: str) -> T:
    """Read a file that `write_tree` wrote, and return what `make` makes of its tree.

    Args:
        path: The file.
        make: Raises KeyError, TypeError or ValueError for what it cannot use.
        what: Its expected content, for the message.
        cure: How to get one.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    return made_of(read_content(path, what, cure), path, make, what)


def read_content(path: Path, what: str, cure: str) -> bytes:
    """Read the bytes of a file.

    Args:
        path: The file.
        what: Its expected content, for the message.
        cure: How to get one.

    Raises:
        DataError: if there is none, or it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path}: no {what} there; {cure}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def made_of(content: bytes, path: Path, make: Callable[[Mapping[str, Any]], T], what: str) -> T:
    """Return what `make` makes of the tree in the content of a file.

    Args:
        content: Written by `write_tree`.
        path: Of the file, for the message.
        make: Raises KeyError, TypeError or ValueError for what it cannot use.
        what: Its expected content, for the message.

    Raises:
        DataError: if it is damaged.
    """
    try:
        return make(torch.load(io.BytesIO(content), weights_only=True))
    except (RuntimeError, KeyError, TypeError, ValueError, EOFError, UnpicklingError) as error:
        raise DataError(f"{path}: is no {what}: {error}") from error
