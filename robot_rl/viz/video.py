"""Writes episodes as an MP4 that browsers play (H.264)."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from PIL import Image, ImageDraw

from robot_rl.data.formats.mp4 import Mp4Writer
from robot_rl.data.schema import IMAGE_PREFIX, Episode, Observation, Step
from robot_rl.learn.actor import EpisodeResult

LEAST_HEIGHT = 200
"""Smaller frames are shown larger, pixel by pixel [px]."""


class VideoRecorder:
    """An observer that films what a camera sees, side by side if there are several; use it in a `with` block.

    A film that cannot be finished is removed.

    Args:
        path: The file.
        frame_rate: Frames per second; the control rate gives real time.
        cameras: Whose frames are shown, from left to right; None shows all.
        hold: How long the last frame of an episode stays [s].
    """

    def __init__(
        self, path: Path, frame_rate: float, cameras: tuple[str, ...] | None = None, hold: float = 1.0
    ) -> None:
        self._cameras = cameras
        self._file, self._held = Mp4Writer(path, frame_rate), round(hold * frame_rate)
        self._episodes = 0

    def on_start(self, episode_id: str, observation: Observation) -> None:
        """A new episode: its first frame."""
        del episode_id  # episodes are numbered
        self._episodes += 1
        self._write(observation, "")

    def on_step(self, step: Step, next_observation: Observation) -> None:
        """The frame that the step led to."""
        self._last = next_observation
        self._write(next_observation, f"step {step.index + 1}")

    def on_end(self, episode: Episode, result: EpisodeResult) -> None:
        """The last frame stays, with the outcome."""
        del episode  # was filmed step by step
        outcome = "success" if result.success else f"failed: {result.failure or 'step limit'}"
        for _ in range(self._held):
            self._write(self._last, f"{outcome}, {result.cycle_time:.1f} s")

    def __enter__(self) -> Self:
        """The recorder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finishes the file, or after an error removes it."""
        self._file.__exit__(kind, error, trace)

    def _write(self, observation: Observation, caption: str) -> None:
        all_keys = [key for key in sorted(observation) if key.startswith(IMAGE_PREFIX)]
        keys = all_keys if self._cameras is None else [f"{IMAGE_PREFIX}{camera}" for camera in self._cameras]
        image = Image.fromarray(np.concatenate([observation[key] for key in keys], axis=1))
        if (factor := -(-LEAST_HEIGHT // image.height)) > 1:
            image = image.resize((factor * image.width, factor * image.height), Image.Resampling.NEAREST)
        draw = ImageDraw.Draw(image)
        draw.text((6, 4), f"episode {self._episodes}  {caption}", fill=(20, 20, 20))
        self._file.add(np.asarray(image))
