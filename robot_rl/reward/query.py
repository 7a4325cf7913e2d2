"""A query: a kind of label, the task in a sentence, and one or two clips of recorded frames."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from robot_rl.errors import DataError


class QueryKind(StrEnum):
    """Kind of a label.

    SUCCESS: probability that the episode succeeded; one value. PROGRESS: share of the task that is done, one value in
    [0, 1] for each frame. PREFERENCE: whether the first of two clips is closer to the goal: 1 yes, 0 no, 0.5 neither.
    SCORE: how near each frame is to the goal, one value each, on a scale of the model's own.
    """

    SUCCESS = "success"
    PROGRESS = "progress"
    PREFERENCE = "preference"
    SCORE = "score"


@dataclass(frozen=True, eq=False)
class Clip:
    """Frames of one episode, in their order in time.

    Attributes:
        episode_id: Of the episode.
        fingerprint: Of its file, from `EpisodeStore.fingerprint`.
        camera: Who saw them.
        rows: Which observations they are, ascending.
        frames: uint8, shape (len(rows), height, width, 3).
        views: Frames of the same moments by further cameras, by name; each as `frames`, perhaps of another size.
    """

    episode_id: str
    fingerprint: str
    camera: str
    rows: tuple[int, ...]
    frames: np.ndarray
    views: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the frames.

        Raises:
            DataError: if there are none, or they are no RGB images.
        """
        for camera, frames in self.by_camera().items():
            if not self.rows or len(self.rows) != len(frames):
                raise DataError(f"episode {self.episode_id}: {len(frames)} frames for rows {list(self.rows)}")
            if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[3] != 3:
                raise DataError(
                    f"episode {self.episode_id}: frames of {camera} are {frames.dtype} {frames.shape}, "
                    "must be uint8 (n, height, width, 3)"
                )

    def by_camera(self) -> dict[str, np.ndarray]:
        """Return the frames of each camera, in the order in which they are shown."""
        return {self.camera: self.frames, **self.views}

    @property
    def subject(self) -> dict[str, Any]:
        """Where the frames come from; JSON values."""
        return {
            "episode_id": self.episode_id,
            "fingerprint": self.fingerprint,
            "camera": self.camera,
            "rows": list(self.rows),
            **({"also": list(self.views)} if self.views else {}),
        }

    def digest(self) -> str:
        """Return the hash of the frames, whichever episode they come from."""
        content = hashlib.sha256()
        for frames in self.by_camera().values():
            content.update(str(frames.shape).encode() + np.ascontiguousarray(frames).tobytes())
        return content.hexdigest()


@dataclass(frozen=True, eq=False)
class Query:
    """One query.

    Attributes:
        kind: Kind of the label that is wanted.
        task: What the robot was to do, in a sentence.
        clips: One, or two for a preference, in the order in which they are shown.
    """

    kind: QueryKind
    task: str
    clips: tuple[Clip, ...]

    def __post_init__(self) -> None:
        """Check the number of clips.

        Raises:
            DataError: if it is not what the kind needs, or there is no task.
        """
        wanted = 2 if self.kind is QueryKind.PREFERENCE else 1
        if len(self.clips) != wanted:
            raise DataError(f"a {self.kind} query takes {wanted} clip(s), got {len(self.clips)}")
        if not self.task.strip():
            raise DataError("a query needs the task in a sentence; set `task`")

    @property
    def subject(self) -> str:
        """The frames that the label is about, as canonical JSON; unique among the labels of one labeller."""
        return canonical([clip.subject for clip in self.clips])

    def key(self, identity: Mapping[str, Any]) -> str:
        """Return the content address of the answer: the same query to the same model in the same way has the same key.

        Args:
            identity: Of the labeller: backend, model, revision, prompt, sampling; JSON values.
        """
        content = {"kind": self.kind, "task": self.task, "clips": [clip.digest() for clip in self.clips]}
        return hashlib.sha256(canonical({"asked": content, "identity": identity}).encode()).hexdigest()


def canonical(value: Any) -> str:
    """Return JSON that is the same for equal values."""
    return json.dumps(value, default=_plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _plain(value: object) -> dict[str, Any]:
    """Return any mapping as a dictionary, which is the only one that `json` knows."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is no JSON value")
