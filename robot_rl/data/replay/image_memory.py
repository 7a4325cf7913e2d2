"""Where replay keeps what it knows of frames: one entry per row of the ring, looked at in random crops.

It knows arrays and slots; it does not know episodes, encoders or networks.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from robot_rl.data.replay.device_memory import device_memory
from robot_rl.data.replay.percept import Images, ImageSpec


class ImageMemory(Protocol):
    """One entry per slot."""

    @property
    def nbytes(self) -> int:
        """Memory taken by all slots [bytes]."""
        ...

    def write(self, slot: int, images: np.ndarray) -> None:
        """Keeps the images of one observation, as their spec says."""
        ...

    def look(self, slots: np.ndarray, rng: np.random.Generator) -> Images:
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

    @property
    def nbytes(self) -> int:
        """Memory taken by all slots [bytes]."""
        return self._features.nbytes

    def write(self, slot: int, images: np.ndarray) -> None:
        """Keeps all crops."""
        self._features[slot] = images

    def look(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One crop of each camera, shape (B, cameras, channels, height, width)."""
        _, crops, cameras, *map_shape = self._features.shape
        chosen = rng.integers(crops, size=(len(slots), cameras))
        rows = (slots[:, None] * crops + chosen) * cameras + self._cameras
        maps = self._features.reshape(-1, math.prod(map_shape))  # one take of whole rows is the fastest gather
        return maps.take(rows.ravel(), axis=0).reshape(len(slots), cameras, *map_shape)

    def read(self, slots: np.ndarray) -> np.ndarray:
        """All crops, shape (B, K, cameras, channels, height, width)."""
        return self._features[slots]


class FrameMemory:
    """Frames; a look shifts each at random and repeats its edges into the gap, as in DrQ (Yarats 2021, 3.1).

    A shift by whole rows and pixels is a shift in memory: looking copies each frame from a little before or after its
    beginning, then mends the few rows and columns that came from its neighbours. So frames are kept without margins,
    and a shift costs little more than a copy.

    Args:
        capacity: Slots.
        spec: Of kind `frames`.
    """

    def __init__(self, capacity: int, spec: ImageSpec) -> None:
        cameras, height, width, colours = spec.shape
        self._reach, self._cameras = spec.shift, np.arange(cameras)
        row = width * colours
        guard = spec.shift * (row + colours)  # bytes that the first and the last frame's shifts reach beyond them
        self._bytes = np.zeros(2 * guard + capacity * cameras * height * row, np.uint8)
        self._frames = self._bytes[guard : len(self._bytes) - guard].reshape(capacity, *spec.shape)
        steps = 2 * spec.shift + 1
        # (slot, camera, down, right, height, width, colour): every shift of every frame, without a copy
        self._shifted = as_strided(
            self._bytes,
            (capacity, cameras, steps, steps, height, width, colours),
            (cameras * height * row, height * row, row, colours, row, colours, 1),
            writeable=False,
        )

    @property
    def nbytes(self) -> int:
        """Memory taken by all slots [bytes]."""
        return self._bytes.nbytes

    def write(self, slot: int, images: np.ndarray) -> None:
        """Keeps the frames."""
        self._frames[slot] = images

    def look(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Each camera's frame, shifted by itself, shape (B, cameras, height, width, 3)."""
        reach = self._reach
        down, right = rng.integers(2 * reach + 1, size=(2, len(slots), len(self._cameras)))
        seen: np.ndarray = self._shifted[slots[:, None], self._cameras, down, right]
        pixels = seen.view("V3").reshape(-1, *self._frames.shape[2:4])  # moved whole, not colour by colour
        _repeat_edge(pixels.swapaxes(1, 2), right.ravel() - reach)
        _repeat_edge(pixels, down.ravel() - reach)
        return seen

    def read(self, slots: np.ndarray) -> np.ndarray:
        """The frames as they were written, shape (B, cameras, height, width, 3)."""
        return self._frames[slots]


def _repeat_edge(views: np.ndarray, shifts: np.ndarray) -> None:
    """Overwrites what a shift along axis 1 of (M, rows, columns) brought in by the outermost row that stayed inside."""
    for shift in range(1, abs(shifts).max(initial=0) + 1):
        after, before = np.flatnonzero(shifts == shift), np.flatnonzero(shifts == -shift)
        last, first = views[after, -shift - 1], views[before, shift]
        for row in range(shift):
            views[after, row - shift] = last
            views[before, row] = first


def image_memory(capacity: int, spec: ImageSpec, device: str = "cpu") -> ImageMemory:
    """The memory for this kind of images, where learning runs."""
    if device != "cpu":
        return device_memory(capacity, spec, device)
    return FeatureMemory(capacity, spec) if spec.kind == "features" else FrameMemory(capacity, spec)
