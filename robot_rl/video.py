"""Writes episodes as an MP4 that browsers play (H.264)."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

import av
import numpy as np
from PIL import Image, ImageDraw

from robot_rl.data.schema import Episode, Observation, Step
from robot_rl.files import writing
from robot_rl.learn.rollout import EpisodeResult

IMAGE_PREFIX = "images/"
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
        self._path, self._rate, self._hold = path, Fraction(frame_rate).limit_denominator(1000), hold
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._container = av.open(str(path), "w", format="mp4")
        self._stream: av.VideoStream | None = None
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
        for _ in range(round(self._hold * self._rate)):
            self._write(self._last, f"{outcome}, {result.cycle_time:.1f} s")

    def close(self) -> None:
        """Finishes the file."""
        with writing(self._path):
            if self._stream is not None:
                self._container.mux(self._stream.encode())
            self._container.close()

    def __enter__(self) -> Self:
        """The recorder itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finishes the file, or after an error removes it."""
        whole = False
        try:
            if error is None:
                self.close()
                whole = True
        finally:
            if not whole:
                with contextlib.suppress(OSError):  # the error under way is the one to tell
                    self._container.close()
                self._path.unlink(missing_ok=True)

    def _write(self, observation: Observation, caption: str) -> None:
        all_keys = [key for key in sorted(observation) if key.startswith(IMAGE_PREFIX)]
        keys = all_keys if self._cameras is None else [f"{IMAGE_PREFIX}{camera}" for camera in self._cameras]
        image = Image.fromarray(np.concatenate([observation[key] for key in keys], axis=1))
        if (factor := -(-LEAST_HEIGHT // image.height)) > 1:
            image = image.resize((factor * image.width, factor * image.height), Image.Resampling.NEAREST)
        draw = ImageDraw.Draw(image)
        draw.text((6, 4), f"episode {self._episodes}  {caption}", fill=(20, 20, 20))
        if self._stream is None:
            self._stream = self._container.add_stream("libx264", rate=self._rate)
            self._stream.width, self._stream.height = image.size
            self._stream.pix_fmt = "yuv420p"
        with writing(self._path):
            self._container.mux(self._stream.encode(av.VideoFrame.from_ndarray(np.asarray(image), format="rgb24")))
