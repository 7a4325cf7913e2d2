"""Where replay keeps what it knows of frames when learning runs on an accelerator: in that device's memory.

Looks are made there, so that only slots and shifts travel. The same draws give the same looks as the memories of
`robot_rl/data/replay/image_memory.py`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

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
        """Keeps the images of one observation."""
        self._entries[slot].copy_(torch.from_numpy(images))

    def read(self, slots: np.ndarray) -> np.ndarray:
        """What was written into `slots`, shape (B, *spec.shape)."""
        return self._entries[self._there(slots)].cpu().numpy()

    def _there(self, indices: np.ndarray) -> Tensor:
        """Indices on the device; sent without waiting for what it does."""
        host = torch.from_numpy(np.ascontiguousarray(indices))
        device = self._entries.device
        return host.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else host


class DeviceFeatureMemory(_DeviceMemory):
    """Features of K crops of each frame; a look picks one of them for each camera."""

    def look(self, slots: np.ndarray, rng: np.random.Generator) -> Tensor:
        """One crop of each camera, shape (B, cameras, channels, height, width), on the device."""
        _, crops, cameras, *map_shape = self._entries.shape
        chosen = rng.integers(crops, size=(len(slots), cameras))
        rows = (slots[:, None] * crops + chosen) * cameras + np.arange(cameras)
        maps = self._entries.view(-1, *map_shape).index_select(0, self._there(rows.ravel()))
        return maps.view(len(slots), cameras, *map_shape)


class DeviceFrameMemory(_DeviceMemory):
    """Frames; a look shifts each at random and repeats its edges into the gap, as in DrQ (Yarats 2021, 3.1)."""

    def __init__(self, capacity: int, spec: ImageSpec, device: str) -> None:
        super().__init__(capacity, spec, device)
        self._reach = spec.shift

    def look(self, slots: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Each camera's frame, shifted by itself, shape (B, cameras, height, width, 3), on the device."""
        _, cameras, height, width, _ = self._entries.shape
        reach, device = self._reach, self._entries.device
        draws = rng.integers(2 * reach + 1, size=(2, len(slots), cameras))
        down, right = self._there(draws - reach)
        rows = (torch.arange(height, device=device) + down[..., None]).clamp(0, height - 1)
        columns = (torch.arange(width, device=device) + right[..., None]).clamp(0, width - 1)
        camera = torch.arange(cameras, device=device)[:, None, None]
        return self._entries[self._there(slots)[:, None, None, None], camera, rows[..., :, None], columns[..., None, :]]


def device_memory(capacity: int, spec: ImageSpec, device: str) -> DeviceFeatureMemory | DeviceFrameMemory:
    """The memory for this kind of images on this device."""
    return (DeviceFeatureMemory if spec.kind == "features" else DeviceFrameMemory)(capacity, spec, device)
