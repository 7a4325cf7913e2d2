"""Memory of replay for images on the accelerator on which learning runs.

Samples are cropped there, so that only slots and shifts are transferred. The same draws give the same samples as the
memories of `robot_rl/data/replay/image_memory.py`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from robot_rl.data.augment import draw_crop_rows, draw_shifts, gather_shifted
from robot_rl.data.replay.percept import ImageSpec


class _DeviceMemory:
    """One entry per slot, in a tensor.

    Args:
        capacity: Slots.
        spec: Shape and dtype of an entry.
        device: Where it is.
    """

    def __init__(self, capacity: int, spec: ImageSpec, device: str) -> None:
        self._entries = torch.zeros(capacity, *spec.shape, dtype=getattr(torch, spec.dtype), device=device)

    @property
    def nbytes(self) -> int:
        """Memory taken by all slots [bytes]."""
        return self._entries.nbytes

    def write(self, slot: int, images: np.ndarray) -> None:
        """Store the images of one observation."""
        self._entries[slot].copy_(torch.from_numpy(images))

    def read(self, slots: np.ndarray) -> np.ndarray:
        """Return what was written into `slots`, shape (B, *spec.shape)."""
        return self._entries[self._there(slots)].cpu().numpy()

    def _there(self, indices: np.ndarray) -> Tensor:
        """Copy indices to the device without waiting for it."""
        host = torch.from_numpy(np.ascontiguousarray(indices))
        device = self._entries.device
        return host.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else host


class DeviceFeatureMemory(_DeviceMemory):
    """Features of K crops of each frame; a sample takes one of them for each camera."""

    def sample(self, slots: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Return one crop of each camera, shape (B, cameras, channels, height, width), on the device."""
        _, crops, cameras, *map_shape = self._entries.shape
        rows = self._there(draw_crop_rows(rng, slots, crops, cameras))
        return self._entries.view(-1, *map_shape).index_select(0, rows).view(len(slots), cameras, *map_shape)


class DeviceFrameMemory(_DeviceMemory):
    """Frames; a sample shifts each at random and repeats its edges into the gap."""

    def __init__(self, capacity: int, spec: ImageSpec, device: str) -> None:
        super().__init__(capacity, spec, device)
        self._reach = spec.shift

    def sample(self, slots: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Return each camera's frame, shifted by itself, shape (B, cameras, height, width, 3), on the device."""
        draws = draw_shifts(rng, self._reach, (2, len(slots), self._entries.shape[1]))
        down, right = self._there(draws - self._reach)
        return gather_shifted(self._entries, self._there(slots), down, right)


def device_memory(capacity: int, spec: ImageSpec, device: str) -> DeviceFeatureMemory | DeviceFrameMemory:
    """Make the memory for this kind of images on this device."""
    return (DeviceFeatureMemory if spec.kind == "features" else DeviceFrameMemory)(capacity, spec, device)
