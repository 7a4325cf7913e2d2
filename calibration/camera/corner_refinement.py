"""Refinement of chessboard corners from the edges that meet in them, to a few hundredths of a pixel.

The usual refinement (Foerstner and Guelch 1987, OpenCV's `cornerSubPix`) solves for the point q that is orthogonal to
all brightness gradients g in a window, `sum g g^T (q - p) = 0` over its pixels p. On a ChArUco board a square window
contains markers, whose edges do not meet in the corner: on tilted boards the result moves by tenths of a pixel. Here
the window is a cross of narrow bands along the four edges, whose directions follow from the neighbouring corners. It
excludes the markers and uses more than half of every edge.

A lens bends the edges: 30 px from a corner, barrel distortion moves them a fifth of a pixel off their tangent, to the
same side at both ends, which would bias the corner. Therefore the bands follow the curvature that is estimated from the
neighbours, and places and gradients are used as if the edges were straight.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

_ALONG = 0.6
"""Length of the bands on each side of the corner, in sides of a square: the next corner is at 1."""
_FADE = 0.1
"""Length of the last part, over which the weight falls to 0, in sides of a square."""
_BAND, _LEAST_BAND = 2.0, 1.0
"""Largest and smallest half width of the bands [px]; an edge is about three pixels wide."""
_SLACK = 1.5
"""Gap between a band and the markers, because of their blur [px]."""
_STEPS, _ACROSS = 31, 11
"""Number of samples along a band and across it."""
_NEIGHBOURHOOD = 1.5
"""Standard deviation of the Gaussian weight of neighbours, in sides of a square."""
_FARTHEST = 3.0
"""Largest change of a corner [px]; a larger one is discarded."""
_ITERATIONS, _CONVERGED = 6, 2e-3


def refine_corners(grey: np.ndarray, points: np.ndarray, pixels: np.ndarray, side: float, margin: float) -> np.ndarray:
    """Refine the places of corners.

    Args:
        grey: The picture, uint8, shape (height, width).
        points: Corners on the board [m], shape (n, 2).
        pixels: Corners in the picture, to about a pixel, shape (n, 2).
        side: Side of a square [m].
        margin: Gap between the edge of a square and the marker in it [m].

    Returns:
        Pixels, shape (n, 2); a corner that cannot be refined keeps its place.
    """
    maps, bends = _local_maps(points / side, pixels)
    chosen = np.flatnonzero(np.isfinite(maps).all(axis=(1, 2)))
    refined = pixels.astype(float).copy()
    if len(chosen) == 0:
        return refined
    bands = _bands(maps[chosen], bends[chosen], margin / side)
    slopes = [cv2.Sobel(grey, cv2.CV_32F, *axis, ksize=1) for axis in ((1, 0), (0, 1))]
    here, active = refined[chosen].copy(), np.ones(len(chosen), bool)
    for _ in range(_ITERATIONS):
        band = bands.only(active)
        x, y = np.moveaxis((here[active, None] + band.offsets).astype(np.float32), 2, 0)
        g = band.straightened(np.stack([cv2.remap(slope, x, y, cv2.INTER_LINEAR) for slope in slopes], axis=2))
        normal = np.einsum("nk,nki,nkj->nij", band.weights, g, g)
        right = np.einsum("nk,nki,nk->ni", band.weights, g, (g * band.straight).sum(axis=2))
        # The regularisation keeps a corner without edges at its place.
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


def _local_maps(points: np.ndarray, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Estimate the map from board to picture around each point from its neighbours; places on the board in sides.

    Returns:
        First derivatives of the pixels, shape (n, 2, 2), NaN where there are too few neighbours; and second
        derivatives, pixel by axis of the board, shape (n, 2, 2), 0 where there are too few neighbours for them.
    """
    maps, bends = np.full((len(points), 2, 2), np.nan), np.zeros((len(points), 2, 2))
    for i, point in enumerate(points):
        apart = points - point
        weights = np.exp(-0.5 * (apart**2).sum(axis=1) / _NEIGHBOURHOOD**2)[:, None]
        design = np.column_stack((np.ones(len(apart)), apart, 0.5 * apart**2, apart.prod(axis=1)))
        for columns in (6, 3):
            solution, _, rank, singular = np.linalg.lstsq(design[:, :columns] * weights, pixels * weights, rcond=None)
            if rank == columns and singular[-1] > 0.02 * singular[0]:
                maps[i] = solution[1:3].T
                bends[i] = solution[3:5].T if columns == 6 else 0.0
                break
    return maps, bends


@dataclass(frozen=True, eq=False)
class _Bands:
    """Samples around corners, k for each of n.

    Attributes:
        offsets: Places relative to the corner [px], shape (n, k, 2).
        straight: The same if the edges were straight [px], shape (n, k, 2).
        weights: Shape (n, k).
        shear: Change of a gradient that straightens the edge, shape (n, k, 2, 2).
    """

    offsets: np.ndarray
    straight: np.ndarray
    weights: np.ndarray
    shear: np.ndarray

    def only(self, chosen: np.ndarray) -> _Bands:
        """Return the samples of some corners."""
        return _Bands(self.offsets[chosen], self.straight[chosen], self.weights[chosen], self.shear[chosen])

    def straightened(self, gradients: np.ndarray) -> np.ndarray:
        """Return the gradients, shape (n, k, 2), of the picture in which the edges are straight."""
        return gradients + np.einsum("nkij,nkj->nki", self.shear, gradients)


def _bands(maps: np.ndarray, bends: np.ndarray, margin: float) -> _Bands:
    """Return samples along both edges through each corner; `maps` and `bends` come from `_local_maps`."""
    along = np.linspace(-_ALONG, _ALONG, _STEPS)
    across = np.linspace(-_BAND - 0.5, _BAND + 0.5, _ACROSS)
    area = np.abs(np.linalg.det(maps))
    fade = np.clip((_ALONG - np.abs(along)) / _FADE, 0.0, 1.0)
    parts: list[_Bands] = []
    for axis in range(2):
        edge = maps[:, :, axis]
        length = np.linalg.norm(edge, axis=1)
        tangent = edge / length[:, None]
        normal = np.stack((-tangent[:, 1], tangent[:, 0]), axis=1)
        band = np.clip(margin * area / length - _SLACK, _LEAST_BAND, _BAND)
        weight = fade[None, :, None] * np.clip(band[:, None, None] + 0.5 - np.abs(across), 0.0, 1.0)
        straight = (
            along[None, :, None, None] * edge[:, None, None] + across[None, None, :, None] * normal[:, None, None]
        )
        # A distance s sides along, the edge is s^2 / 2 times this off its tangent [px], and turned by s times this.
        bend = (bends[:, :, axis] * normal).sum(axis=1)[:, None] * along
        off = (0.5 * bend * along)[:, :, None, None] * normal[:, None, None]
        shear = (bend / length[:, None])[:, :, None, None] * (tangent[:, :, None] * normal[:, None, :])[:, None]
        shape = (len(maps), _STEPS, _ACROSS)
        parts.append(
            _Bands(
                (straight + off).reshape(len(maps), -1, 2),
                straight.reshape(len(maps), -1, 2),
                np.broadcast_to(weight, shape).reshape(len(maps), -1),
                np.broadcast_to(shear[:, :, None], (*shape, 2, 2)).reshape(len(maps), -1, 2, 2),
            )
        )
    a, b = parts
    pairs = ((a.offsets, b.offsets), (a.straight, b.straight), (a.weights, b.weights), (a.shear, b.shear))
    return _Bands(*(np.concatenate(pair, axis=1) for pair in pairs))
