"""Where replay keeps what it knows of frames: one entry per row of the ring, looked at in random crops.

It knows arrays and slots; it does not know episodes, encoders or networks.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from robot_rl.data.percept import ImageSpec


class ImageMemory(Protocol):
    """One entry per slot."""

    def write(self, slot: int, images: np.ndarray) -> None:
        """Keeps the images of one observation, as their spec says."""
        ...

    def look(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """What networks see of the observations in `slots`, each camera cropped at random. Shape (B, *view_shape)."""
        ...

    def read(self, slots: np.ndarray) -> np.ndarray:
        """What was written into `slots`, shape (B, *spec.shape)."""
        ...


class FeatureMemory:
    """Features of K crops of each frame; a look picks one of them for each camera.

    Args:
        capacity: Slots.
        spec: Of kind `features`.
    """

    def __init__(self, capacity: int, spec: ImageSpec) -> None:
        self._features = np.zeros((capacity, *spec.shape), spec.dtype)
        self._cameras = np.arange(spec.shape[1])

    def write(self, slot: int, images: np.ndarray) -> None:
        """Keeps all crops."""
        self._features[slot] = images

    def look(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One crop of each camera, shape (B, cameras, channels, height, width)."""
        crops = rng.integers(self._features.shape[1], size=(len(slots), len(self._cameras)))
        return self._features[slots[:, None], crops, self._cameras]

    def read(self, slots: np.ndarray) -> np.ndarray:
        """All crops, shape (B, K, cameras, channels, height, width)."""
        return self._features[slots]


class FrameMemory:
    """Frames with their edges repeated outwards; a look cuts a window out of each, as in DrQ (Yarats 2021, 3.1).

    The repeated edges cost an eighth of the memory at 4 px of 128, and make a random shift as cheap as a copy.

    Args:
        capacity: Slots.
        spec: Of kind `frames`.
    """

    def __init__(self, capacity: int, spec: ImageSpec) -> None:
        cameras, height, width, colours = spec.shape
        self._shift, self._cameras = spec.shift, np.arange(cameras)
        self._size = height, width
        padded = (capacity, cameras, height + 2 * spec.shift, width + 2 * spec.shift, colours)
        self._frames = np.zeros(padded, np.uint8)
        # (slot, camera, row, column, height, width, colour): every window of every frame, without a copy
        windows = sliding_window_view(self._frames, self._size, axis=(2, 3))
        self._windows = np.moveaxis(windows, 4, -1)

    def write(self, slot: int, images: np.ndarray) -> None:
        """Keeps the frames, edges repeated."""
        around = (self._shift, self._shift)
        self._frames[slot] = np.pad(images, ((0, 0), around, around, (0, 0)), mode="edge")

    def look(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Each camera's frame, shifted by itself, shape (B, cameras, height, width, 3)."""
        down, right = rng.integers(2 * self._shift + 1, size=(2, len(slots), len(self._cameras)))
        return self._windows[slots[:, None], self._cameras, down, right]

    def read(self, slots: np.ndarray) -> np.ndarray:
        """The frames as they were written, shape (B, cameras, height, width, 3)."""
        height, width = self._size
        inner = slice(self._shift, self._shift + height), slice(self._shift, self._shift + width)
        return self._frames[slots][:, :, inner[0], inner[1]]


def image_memory(capacity: int, spec: ImageSpec) -> ImageMemory:
    """The memory for this kind of images."""
    return FeatureMemory(capacity, spec) if spec.kind == "features" else FrameMemory(capacity, spec)
