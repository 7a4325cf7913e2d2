"""Writes an H.264 video, frame by frame."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

import av
import numpy as np

from robot_rl.errors import DataError
from robot_rl.system.atomic_file import writing


class Mp4Writer:
    """A video file; use it in a `with` block. A file that cannot be finished is removed.

    Args:
        path: The file.
        fps: Frames per second.
        options: Of the encoder.
    """

    def __init__(self, path: Path, fps: float, options: Mapping[str, str] | None = None) -> None:
        self._path, self._rate, self._options = path, Fraction(fps).limit_denominator(1000), dict(options or {})
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._container = av.open(str(path), "w", format="mp4")
        self._stream: av.VideoStream | None = None

    def add(self, frame: np.ndarray) -> None:
        """Append a picture, uint8 of shape (height, width, 3); height and width even, and the same for all.

        Raises:
            DataError: if it is not.
            RunDirectoryError: if it cannot be written.
        """
        height, width = frame.shape[:2]
        if frame.shape != (height, width, 3) or height % 2 or width % 2:
            raise DataError(f"{self._path}: a video needs colour pictures of even height and width, got {frame.shape}")
        if self._stream is None:
            self._stream = self._container.add_stream("libx264", rate=self._rate, options=self._options)
            self._stream.width, self._stream.height, self._stream.pix_fmt = width, height, "yuv420p"
        if (self._stream.height, self._stream.width) != (height, width):
            raise DataError(f"{self._path}: a picture of {height} x {width}, those before are of another size")
        with writing(self._path):
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
            self._container.mux(self._stream.encode(picture))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finishes the file, or after an error removes it."""
        whole = False
        try:
            if error is None:
                with writing(self._path):
                    if self._stream is not None:
                        self._container.mux(self._stream.encode())
                    self._container.close()
                whole = True
        finally:
            if not whole:
                with contextlib.suppress(OSError):  # the error under way is the one to report
                    self._container.close()
                with contextlib.suppress(OSError):
                    self._path.unlink()
