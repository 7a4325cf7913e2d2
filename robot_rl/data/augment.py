"""Image augmentation: random shifts with repeated edges (DrQ; Yarats 2021, section 3.1), and one of K stored crops.

Replay on a CPU and on a GPU, perception and classifiers share these functions. They lie in `data`, which `learn` and
`reward` import, because replay augments when it samples. A shift is counted from the upper left end of its range: with
a reach of r pixels it is 0 to 2 r, and r leaves the frame where it is.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def draw_shifts(rng: np.random.Generator, reach: int, size: int | tuple[int, ...]) -> np.ndarray:
    """Draw shifts from 0 to 2 `reach`, an integer array of shape `size`."""
    return rng.integers(2 * reach + 1, size=size)


def pad_edges(frames: np.ndarray, reach: int) -> np.ndarray:
    """Repeat the edges of frames (..., height, width, colours) into a margin of `reach` pixels on each side."""
    margins = ((0, 0),) * (frames.ndim - 3) + ((reach, reach), (reach, reach), (0, 0))
    return np.pad(frames, margins, mode="edge")


def shifted(padded: np.ndarray, reach: int, down: int, right: int) -> np.ndarray:
    """Return the view of a padded frame that is shifted by `down` and `right`, of the size before padding."""
    height, width = padded.shape[-3] - 2 * reach, padded.shape[-2] - 2 * reach
    return padded[..., down : down + height, right : right + width, :]


def repeat_edges(frames: np.ndarray, down: np.ndarray, right: np.ndarray) -> None:
    """Overwrite, in place, the rows and columns that a shift in memory brought in from beyond the frame.

    Args:
        frames: Shape (M, height, width), each pixel one element; shifted in memory.
        down: By how many rows each was moved, negative upwards, shape (M,).
        right: By how many columns.
    """
    _repeat_edge(frames.swapaxes(1, 2), right)
    _repeat_edge(frames, down)


def _repeat_edge(frames: np.ndarray, shifts: np.ndarray) -> None:
    """Overwrite what a shift along axis 1 brought in by the outermost row that stayed inside."""
    for shift in range(1, abs(shifts).max(initial=0) + 1):
        after, before = np.flatnonzero(shifts == shift), np.flatnonzero(shifts == -shift)
        last, first = frames[after, -shift - 1], frames[before, shift]
        for row in range(shift):
            frames[after, row - shift] = last
            frames[before, row] = first


def gather_shifted(frames: Tensor, slots: Tensor, down: Tensor, right: Tensor) -> Tensor:
    """Gather shifted frames on the device on which they are; the edges are repeated.

    Args:
        frames: Shape (slots, cameras, height, width, colours).
        slots: Which are gathered, shape (B,).
        down: By how many rows each camera's frame is moved, negative upwards, shape (B, cameras).
        right: By how many columns.

    Returns:
        Shape (B, cameras, height, width, colours).
    """
    _, cameras, height, width, _ = frames.shape
    rows = (torch.arange(height, device=frames.device) + down[..., None]).clamp(0, height - 1)
    columns = (torch.arange(width, device=frames.device) + right[..., None]).clamp(0, width - 1)
    camera = torch.arange(cameras, device=frames.device)[:, None, None]
    return frames[slots[:, None, None, None], camera, rows[..., :, None], columns[..., None, :]]


def draw_crop_rows(rng: np.random.Generator, slots: np.ndarray, crops: int, cameras: int) -> np.ndarray:
    """Draw one of the K stored crops for each camera of each observation.

    Args:
        rng: The source of randomness.
        slots: Of the observations, shape (B,).
        crops: K.
        cameras: Number of cameras.

    Returns:
        Rows of the stored array (slots, K, cameras, ...) with its first three axes made one, shape (B * cameras,).
    """
    chosen = rng.integers(crops, size=(len(slots), cameras))
    rows: np.ndarray = (slots[:, None] * crops + chosen) * cameras + np.arange(cameras)
    return rows.ravel()
