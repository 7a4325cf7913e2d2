"""Frames as a server takes them: reduced to what it needs, as JPEG in a data URL."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

JPEG_QUALITY = 90


def reduced(frame: np.ndarray, longest_side: int) -> np.ndarray:
    """The frame, with its longest side reduced to at most `longest_side` [px]; never enlarged.

    Args:
        frame: uint8, shape (height, width, 3).
        longest_side: Of the result [px].
    """
    height, width = frame.shape[:2]
    if max(height, width) <= longest_side:
        return frame
    scale = longest_side / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS))


def data_url(frame: np.ndarray) -> str:
    """A frame, uint8 of shape (height, width, 3), as `data:image/jpeg;base64,...`."""
    content = io.BytesIO()
    Image.fromarray(frame).save(content, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    return "data:image/jpeg;base64," + base64.b64encode(content.getvalue()).decode()
