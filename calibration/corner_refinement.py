"""Corners of a chessboard from the edges that meet in them, to a few hundredths of a pixel.

The usual refinement (Foerstner and Guelch 1987, OpenCV's `cornerSubPix`) looks for the point q that all brightness
gradients g in a window point away from, `sum g g^T (q - p) = 0` over its pixels p. On a ChArUco board a square window
takes in the markers, whose edges do not meet in the corner: on tilted boards it moves by tenths of a pixel. Here the
window is a cross of narrow bands along the four edges, as the neighbouring corners say they run; it leaves the
markers out and makes use of more than half of every edge.
"""

from __future__ import annotations

import cv2
import numpy as np

_ALONG = 0.6
"""How far the bands reach, in sides of a square: the next corner is at 1."""
_FADE = 0.1
"""The last part of that, over which the weight falls to 0."""
_BAND, _LEAST_BAND = 2.0, 1.0
"""Half the width of the bands, at most and at least [px]; an edge is about three pixels wide."""
_SLACK = 1.5
"""Between a band and the markers [px]: their blur."""
_STEPS, _ACROSS = 31, 11
"""Samples along a band, and across it."""
_NEIGHBOURHOOD = 1.5
"""Standard deviation of the weight of neighbours, in sides of a square."""
_FARTHEST = 3.0
"""A corner that moves by more was no corner [px]."""
_ITERATIONS, _CONVERGED = 6, 2e-3


def refine_corners(grey: np.ndarray, points: np.ndarray, pixels: np.ndarray, side: float, margin: float) -> np.ndarray:
    """Where corners are, more exactly.

    Args:
        grey: The picture, uint8, shape (height, width).
        points: Where the corners are on the board [m], shape (n, 2).
        pixels: Where they are in the picture, to about a pixel, shape (n, 2).
        side: Of a square [m].
        margin: Between the edges of a square and the marker in it [m].

    Returns:
        Pixels, shape (n, 2); those given where neighbours or the picture do not tell more.
    """
    maps = _local_maps(points / side, pixels)
    chosen = np.flatnonzero(np.isfinite(maps).all(axis=(1, 2)))
    refined = pixels.astype(float).copy()
    if len(chosen) == 0:
        return refined
    offsets, weights = _bands(maps[chosen], margin / side)
    slopes = [cv2.Sobel(grey, cv2.CV_32F, *axis, ksize=1) for axis in ((1, 0), (0, 1))]
    here, active = refined[chosen].copy(), np.ones(len(chosen), bool)
    for _ in range(_ITERATIONS):
        x, y = np.moveaxis((here[active, None] + offsets[active]).astype(np.float32), 2, 0)
        g = np.stack([cv2.remap(slope, x, y, cv2.INTER_LINEAR) for slope in slopes], axis=2)
        normal = np.einsum("nk,nki,nkj->nij", weights[active], g, g)
        right = np.einsum("nk,nki,nk->ni", weights[active], g, (g * offsets[active]).sum(axis=2))
        # The least gradient that counts keeps a corner without edges where it is.
        change = np.linalg.solve(normal + np.eye(2), right[:, :, None])[:, :, 0]
        here[active] += change
        moving = np.linalg.norm(change, axis=1) > _CONVERGED
        near = np.linalg.norm(here - refined[chosen], axis=1) <= _FARTHEST
        active[np.flatnonzero(active)[~moving]] = False
        active &= near
        if not active.any():
            break
    refined[chosen[near]] = here[near]
    return refined


def _local_maps(points: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    """Derivative of the pixels by the place on the board, as the neighbours say, in sides, shape (n, 2, 2); or NaN."""
    maps = np.full((len(points), 2, 2), np.nan)
    for i, point in enumerate(points):
        apart = points - point
        weight = np.exp(-0.5 * (apart**2).sum(axis=1) / _NEIGHBOURHOOD**2)[:, None]
        design = np.column_stack((np.ones(len(apart)), apart))
        solution, _, rank, singular = np.linalg.lstsq(design * weight, pixels * weight, rcond=None)
        if rank == 3 and singular[2] > 0.02 * singular[0]:
            maps[i] = solution[1:].T
    return maps


def _bands(maps: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples around each corner [px], shape (n, k, 2), and their weights, shape (n, k)."""
    along = np.linspace(-_ALONG, _ALONG, _STEPS)
    across = np.linspace(-_BAND - 0.5, _BAND + 0.5, _ACROSS)
    area = np.abs(np.linalg.det(maps))
    fade = np.clip((_ALONG - np.abs(along)) / _FADE, 0.0, 1.0)
    offsets, weights = [], []
    for axis in range(2):
        edge = maps[:, :, axis]
        length = np.linalg.norm(edge, axis=1)
        normal = np.stack((-edge[:, 1], edge[:, 0]), axis=1) / length[:, None]
        band = np.clip(margin * area / length - _SLACK, _LEAST_BAND, _BAND)
        place = along[None, :, None, None] * edge[:, None, None] + across[None, None, :, None] * normal[:, None, None]
        weight = fade[None, :, None] * np.clip(band[:, None, None] + 0.5 - np.abs(across), 0.0, 1.0)
        offsets.append(place.reshape(len(maps), -1, 2))
        weights.append(np.broadcast_to(weight, (len(maps), _STEPS, _ACROSS)).reshape(len(maps), -1))
    return np.concatenate(offsets, axis=1), np.concatenate(weights, axis=1)
