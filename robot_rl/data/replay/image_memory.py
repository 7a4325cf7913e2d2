"""Memory of replay for images: one entry for each row of the ring, sampled in random crops.

It works on arrays and slots, without episodes, encoders or networks.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.lib.stride_tricks import as_strided

from robot_rl.data.augment import draw_crop_rows, draw_shifts, repeat_edges
from robot_rl.data.replay.device_memory import device_memory
from robot_rl.data.replay.percept import Images, ImageSpec


class ImageMemory(Protocol):
    """One entry per slot."""

    @property
    def nbytes(self) -> int:
        """Memory taken by all slots [bytes]."""
        ...

    def write(self, slot: int, images: np.ndarray) -> None:
        """Store the images of one observation, of the shape and dtype of their spec."""
        ...

    def sample(self, slots: np.ndarray, rng: np.random.Generator) -> Images:
        """Return the images in `slots` as networks take them, each camera cropped at random; (B, *view_shape)."""
        ...

    def read(self, slots: np.ndarray) -> np.ndarray:
        """Return what was written into `slots`, shape (B, *spec.shape)."""
        ...


class FeatureMemory:
    """Features of K crops of each frame; a sample takes one of them for each camera.

    Args:
        capacity: Slots.
        spec: Of kind `features`.
    """

    def __init__(self, capacity: int, spec: ImageSpec) -> None:
        self._features = np.zeros((capacity, *spec.shape), spec.dtype)

    @property
    def nbytes(self) -> int:
        """Memory taken by all slots [bytes]."""
        return self._features.nbytes

    def write(self, slot: int, images: np.ndarray) -> None:
        """Store all crops."""
        self._features[slot] = images

    def sample(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return one crop of each camera, shape (B, cameras, channels, height, width)."""
        _, crops, cameras, *map_shape = self._features.shape
        maps = self._features.reshape(-1, math.prod(map_shape))  # one take of whole rows is the fastest gather
        rows = draw_crop_rows(rng, slots, crops, cameras)
        return maps.take(rows, axis=0).reshape(len(slots), cameras, *map_shape)

    def read(self, slots: np.ndarray) -> np.ndarray:
        """Return all crops, shape (B, K, cameras, channels, height, width)."""
        return self._features[slots]


class FrameMemory:
    """Frames; a sample shifts each at random and repeats its edges into the gap.

    A shift by whole rows and pixels is a shift in memory: sampling copies each frame from a little before or after its
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
        """Store the frames."""
        self._frames[slot] = images

    def sample(self, slots: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return each camera's frame, shifted by itself, shape (B, cameras, height, width, 3)."""
        reach = self._reach
        down, right = draw_shifts(rng, reach, (2, len(slots), len(self._cameras)))
        images: np.ndarray = self._shifted[slots[:, None], self._cameras, down, right]
        pixels = images.view("V3").reshape(-1, *self._frames.shape[2:4])  # moved whole, not colour by colour
        repeat_edges(pixels, down.ravel() - reach, right.ravel() - reach)
        return images

    def read(self, slots: np.ndarray) -> np.ndarray:
        """Return the frames as they were written, shape (B, cameras, height, width, 3)."""
        return self._frames[slots]


def image_memory(capacity: int, spec: ImageSpec, device: str = "cpu") -> ImageMemory:
    """Make the memory for this kind of images, on the device of the learner."""
    if device != "cpu":
        return device_memory(capacity, spec, device)
    return FeatureMemory(capacity, spec) if spec.kind == "features" else FrameMemory(capacity, spec)


def enlarged(memory: ImageMemory, rows: int, capacity: int, spec: ImageSpec, device: str = "cpu") -> ImageMemory:
    """Make a memory of so many slots, with what the first `rows` slots of another one hold."""
    larger = image_memory(capacity, spec, device)
    for slot in range(rows):
        larger.write(slot, memory.read(np.array([slot]))[0])
    return larger
