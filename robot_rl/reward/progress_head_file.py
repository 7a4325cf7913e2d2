"""The file of a progress head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robot_rl.reward.head_file import ReadFile, made_of, read_content
from robot_rl.reward.progress_head import ProgressHead, progress_head_of
from robot_rl.reward.query import Kind

CURE = "`robot-rl label train --kind progress` makes one"


@dataclass(frozen=True, eq=False)
class ProgressHeadFile(ReadFile):
    """A progress head and the bytes that it was made of.

    Attributes:
        head: What the file holds.
    """

    head: ProgressHead


def read_progress_head_file(path: Path) -> ProgressHeadFile:
    """What `ProgressHead.write` wrote.

    Raises:
        DataError: if there is none, it is damaged, or it is a head for labels of another kind.
    """
    what = "progress head"
    content = read_content(path, what, CURE)
    return ProgressHeadFile(path, content, made_of(content, path, _of_progress, what))


def _of_progress(tree: Mapping[str, Any]) -> ProgressHead:
    if tree.get("kind") != Kind.PROGRESS:
        raise ValueError(f"it is of another kind; {CURE}")
    return progress_head_of(tree)
