"""Augmentation of frames: light, colour, contrast, and a camera that moved a little."""

from __future__ import annotations

import numpy as np

from robot_rl.data.augment import draw_shifts, pad_edges, shifted

BRIGHTNESS, COLOUR, CONTRAST = 0.35, 0.12, 0.2
"""Half-widths of uniform draws about 1."""
SHIFT = 0.01
"""Largest shift, of the width: more of it would hide what is a matter of millimetres."""


def augmented(frame: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a random variant of a frame, uint8 (height, width, 3); edges are repeated where it moved."""
    pixels = frame.astype(np.float32) * (rng.uniform(1 - COLOUR, 1 + COLOUR, 3) * _about_one(rng, BRIGHTNESS))
    mean = pixels.mean()
    pixels = (pixels - mean) * _about_one(rng, CONTRAST) + mean
    reach = max(1, round(SHIFT * frame.shape[1]))
    down, right = draw_shifts(rng, reach, 2)
    moved = shifted(pad_edges(pixels, reach), reach, down, right)
    return np.clip(np.rint(moved), 0, 255).astype(np.uint8)


def _about_one(rng: np.random.Generator, width: float) -> np.float32:
    return np.float32(rng.uniform(1 - width, 1 + width))
