"""Frames from a video or a folder of pictures, at the pace of a camera."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
from PIL import Image, UnidentifiedImageError

from robot_rl.camera.source import CaptureFormat, Frame
from robot_rl.clock import Clock, Rate, WallClock
from robot_rl.errors import CameraError, ConfigError

PICTURES = (".png", ".jpg", ".jpeg", ".bmp")


def make_file(which: str, wanted: CaptureFormat) -> Callable[[], FileSource]:
    """Return what opens `file:WHICH`.

    Raises:
        ConfigError: if no path is given.
    """
    if not which:
        raise ConfigError("no camera is called 'file:'; valid: file:PATH, a video or a folder of pictures")
    return lambda: FileSource(which, wanted.rate)


class FileSource:
    """Shows what is in a file or folder over and over; after the last frame a folder is looked into anew.

    Args:
        path: A video, or a folder of pictures, which are shown in the order of their names.
        rate: Frames per second, whatever the video says.
        clock: Whose time the stamps are.

    Raises:
        CameraError: if there is nothing to show.
    """

    serial = ""

    def __init__(self, path: str, rate: float, clock: Clock | None = None) -> None:
        self._path, self._clock = Path(path).expanduser(), clock or WallClock()
        self._rate = Rate(self._clock, 1.0 / rate)
        self._images = self._decode()

    def read(self) -> Frame:
        """Return the next frame, when it is due."""
        image = next(self._images, None)
        if image is None:  # once through
            self._images = self._decode()
            image = next(self._images, None)
        if image is None:
            raise CameraError(f"{self._path}: has no frames")
        self._rate.sleep()
        return Frame(self._clock.now(), image)

    def close(self) -> None:
        """Nothing is held between two frames of a folder; a video is let go."""
        self._images = iter(())

    def _decode(self) -> Iterator[np.ndarray]:
        if self._path.is_dir():
            pictures = sorted(p for p in self._path.iterdir() if p.suffix.lower() in PICTURES)
            if not pictures:
                raise CameraError(f"{self._path}: holds no pictures ({', '.join(PICTURES)})")
            return map(_picture, pictures)
        if not self._path.is_file():
            raise CameraError(f"{self._path}: no such video or folder; check the path")
        return _video(self._path)


def _picture(path: Path) -> np.ndarray:
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except (OSError, UnidentifiedImageError) as error:
        raise CameraError(f"{path}: cannot be read as a picture: {error}") from error


def _video(path: Path) -> Iterator[np.ndarray]:
    try:
        with av.open(str(path)) as container:
            for frame in container.decode(video=0):
                yield frame.to_ndarray(format="rgb24")
    except (av.FFmpegError, IndexError) as error:
        raise CameraError(f"{path}: cannot be read as a video: {error}") from error
