"""Depth images as pictures, so that they are stored, shown and learned from like those of any camera."""

from __future__ import annotations

import numpy as np

LEVELS = 254
"""Steps of distance between the nearest and the farthest; 0 is left for what was not measured."""


def depth_picture(depth: np.ndarray, near: float, far: float) -> np.ndarray:
    """Return a depth image as a grey picture, uint8, shape (height, width, 3): 255 at `near`, 1 at `far` and beyond.

    Args:
        depth: Distance along the optical axis [m], shape (height, width); 0, negative or not finite: not measured,
            which becomes 0 in the picture.
        near: Distance of the brightest pixels, also for nearer ones [m].
        far: Distance of the darkest ones [m].
    """
    measured = np.isfinite(depth) & (depth > 0.0)
    share = (far - np.where(measured, depth, far)) / (far - near)
    grey = np.where(measured, 1.0 + np.rint(LEVELS * np.clip(share, 0.0, 1.0)), 0.0).astype(np.uint8)
    return np.repeat(grey[:, :, None], 3, axis=2)
