"""Camera frames as JPEG: the newest ones for the live view, and those of recorded episodes."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
from PIL import Image

QUALITY = 80


def jpeg(frame: np.ndarray) -> bytes:
    """An RGB frame, uint8, shape (height, width, 3), as JPEG."""
    content = io.BytesIO()
    Image.fromarray(frame).save(content, "JPEG", quality=QUALITY)
    return content.getvalue()


class LivePictures:
    """The newest frames, encoded once for all pages."""

    def __init__(self) -> None:
        self._stamp = -1
        self._pictures: tuple[bytes, ...] = ()

    def encode(self, stamp: int, frames: Mapping[str, np.ndarray]) -> tuple[bytes, ...]:
        """One message per camera: its number in the order of `frames` (one byte), then the JPEG."""
        if stamp != self._stamp:
            self._pictures = tuple(bytes((number,)) + jpeg(frame) for number, frame in enumerate(frames.values()))
            self._stamp = stamp
        return self._pictures
