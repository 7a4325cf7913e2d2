"""A success head as a `Backend`: looks at the last frame of an episode."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robot_rl.errors import ConfigError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.budget import Budget
from robot_rl.reward.query import Query
from robot_rl.reward.success_head import FrameFeatures, read_head


class HeadBackend:
    """Answers queries about success.

    Args:
        path: File of the head.
        budget: What may be used.

    Raises:
        DataError: if there is no head.
    """

    concurrency = 1

    def __init__(self, path: Path, budget: Budget) -> None:
        self._head, self._budget = read_head(path), budget
        self._features = FrameFeatures(self._head.encoder, self._head.size)
        digest = hashlib.sha256(self._head.weight.numpy().tobytes() + self._head.mean.numpy().tobytes())
        self._revision, self._lock = f"sha256-{digest.hexdigest()[:16]}", threading.Lock()

    @property
    def identity(self) -> Mapping[str, Any]:
        """The head, and the episodes that it knows."""
        head = self._head
        return {
            "backend": "head",
            "model": f"success head on {head.encoder}",
            "revision": self._revision,
            "trained_on": list(head.trained_on),
        }

    def ask(self, query: Query) -> Answer:
        """See `Backend.ask`."""
        started, head = time.monotonic(), self._head
        (clip,) = query.clips
        if clip.camera != head.camera:
            raise ConfigError(
                f"the head was trained on camera {head.camera}, asked about {clip.camera}; set frames.camera"
            )
        if query.task != head.task:
            raise ConfigError(f"the head was trained for {head.task!r}, asked about {query.task!r}; train another")
        with self._lock, self._budget.purchase():
            probability = float(head(self._features(clip.frames[-1:]))[0])
        return Answer(Status.OK, (probability,), latency=time.monotonic() - started)

    def close(self) -> None:
        """Nothing is held but memory."""
