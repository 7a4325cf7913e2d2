"""Return the visible part of a frame: a rectangle of it, brought to a size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image

from robot_rl.errors import ConfigError


@dataclass(frozen=True)
class Crop:
    """A rectangle and a size.

    Attributes:
        crop: Left, top, width and height of the rectangle in the frame [px].
        size: Width and height of what is shown [px].
    """

    crop: tuple[int, int, int, int]
    size: tuple[int, int]

    def apply(self, image: np.ndarray) -> np.ndarray:
        """Return the visible part of a frame, uint8 (height, width, 3). Each pixel is a mean over those that it covers.

        The edges of the rectangle are the edges of the result: column u of the frame is column
        `(u + 0.5 - left) * scale - 0.5` of the result, as in `CameraIntrinsics.viewed`.
        """
        left, top, width, height = self.crop
        cut = image[top : top + height, left : left + width]
        if (width, height) == self.size:
            return np.ascontiguousarray(cut)
        return np.asarray(Image.fromarray(np.ascontiguousarray(cut)).resize(self.size, Image.Resampling.BILINEAR))


def make_crop(captured: tuple[int, int], size: int, crop: tuple[int, int, int, int] | None = None) -> Crop:
    """Return a view of frames of a size.

    Args:
        captured: Width and height of the frames [px].
        size: Width and height of what is shown [px]; 0 shows the rectangle as it is.
        crop: Left, top, width and height of the rectangle [px]; None takes the largest square in the middle, or the
            whole frame where `size` is 0.

    Raises:
        ConfigError: if the rectangle is not inside the frame.
    """
    width, height = captured
    if crop is None:
        side = min(width, height)
        crop = ((width - side) // 2, (height - side) // 2, side, side) if size else (0, 0, width, height)
    left, top, wide, high = crop
    if min(left, top) < 0 or min(wide, high) < 1 or left + wide > width or top + high > height:
        raise ConfigError(
            f"the crop {left},{top},{wide},{high} (left, top, width, height) is not inside frames of {width} x "
            f"{height} px; choose one that is, or leave it out for the largest square in the middle"
        )
    return Crop(crop, (size, size) if size else (wide, high))
