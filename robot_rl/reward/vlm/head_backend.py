"""A head as a `Backend`: for success of the last frame of an episode, for progress of all frames."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_rl.errors import ConfigError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.heads.frame_features import FrameFeatures
from robot_rl.reward.heads.head_file import read_tree
from robot_rl.reward.heads.progress_head import ProgressHead, progress_head_of
from robot_rl.reward.heads.success_head import SuccessHead, head_of
from robot_rl.reward.query import Query, QueryKind
from robot_rl.system.model_files import PROGRESS_HEAD, kind_of


class HeadBackend:
    """Answers queries about success or about progress.

    Args:
        path: File of the head.
        kind: Of the queries.
        budget: What may be used.

    Raises:
        DataError: if there is no head.
        ConfigError: if it is one for labels of another kind.
    """

    concurrency = 1

    def __init__(self, path: Path, kind: QueryKind, budget: Budget) -> None:
        self._head, self._kind, self._budget = read_head(path), kind, budget
        made_for = QueryKind.SUCCESS if isinstance(self._head, SuccessHead) else QueryKind.PROGRESS
        if kind is not made_for:
            raise ConfigError(
                f"{path}: is a head for kind={made_for}, not for kind={kind}; "
                f"set kind={made_for}, or make one with `label train --kind {kind}`"
            )
        self._features = FrameFeatures(self._head.encoder, self._head.size)
        self._revision, self._lock = self._head.revision, threading.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The head, and the episodes that it was trained on."""
        head = self._head
        return {
            "backend": "head",
            "model": f"{self._kind} head on {head.encoder}",
            "revision": self._revision,
            "trained_on": list(head.trained_on),
        }

    def answer(self, query: Query) -> Answer:
        """Return the head's output for the query's frames; see `Backend.answer`."""
        started, head = time.monotonic(), self._head
        (clip,) = query.clips
        if clip.camera != head.camera:
            raise ConfigError(f"the head was trained on camera {head.camera}, not on {clip.camera}; set frames.camera")
        if query.task != head.task:
            raise ConfigError(f"the head was trained for {head.task!r}, not for {query.task!r}; train another")
        with self._lock, self._budget.purchase():
            frames = clip.frames[-1:] if self._kind is QueryKind.SUCCESS else clip.frames
            values = tuple(head(self._features(frames)).tolist())
        return Answer(Status.OK, values, latency=time.monotonic() - started)

    def close(self) -> None:
        """Do nothing: it holds only memory."""


def read_head(path: Path) -> SuccessHead | ProgressHead:
    """Read a file that `robot-rl label train` wrote.

    Raises:
        DataError: if there is none, or it is damaged.
    """
    return read_tree(path, _head_of, "head", "`robot-rl label train` makes one")


def _head_of(tree: Mapping[str, Any]) -> SuccessHead | ProgressHead:
    return progress_head_of(tree) if kind_of(tree) is PROGRESS_HEAD else head_of(tree)
