"""Blur of a picture by the width of its edges: contrast over slope, along all directions and along the widest one.

A lens out of focus widens all edges. Motion widens the edges across it alone; the edges along it stay sharp, and the
corners are found in the wrong place, or not at all. So the slope is also measured along single directions.
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

MAX_EDGE_WIDTH = 6.0
"""Width of an edge above which a picture is blurred: corners are no longer accurate to a tenth of a pixel [px]."""
MAX_MOTION = MAX_EDGE_WIDTH * np.sqrt(2.0)
"""The same along a single direction [px]: at 45 deg to it, all edges of a board look that much wider."""
_MOTION_RATIO = 1.8
"""Widest over narrowest direction above which a blur is one by motion; a sharp board has up to 1.4."""
_MOST_MOTION = 60.0
"""Width from which on a picture has no edges at all in a direction [px]: it shows no board, sharp or blurred."""
_DIRECTIONS = np.radians(np.arange(0.0, 180.0, 22.5))
_LEAST_SLOPE = 1e-3


def picture_blur(grey: np.ndarray) -> str:
    """Return why a picture without a board is too blurred to show one; empty if its sharpest edges are sharp.

    Args:
        grey: uint8, shape (height, width).
    """
    low, high = np.percentile(grey, (1, 99))
    slopes = [float(np.percentile(slope, 99.8)) for slope in _slopes(*_gradient(grey))]
    widths = (high - low) / np.maximum(slopes, _LEAST_SLOPE)
    return _describe(np.append(widths[:1], widths[1:][widths[1:] <= _MOST_MOTION]), "its sharpest edges")


def corner_blur(grey: np.ndarray, pixels: np.ndarray) -> str:
    """Return why the corners of a picture, shape (n, 2) [px], are too blurred; empty if they are sharp."""
    return _describe(_widths(grey, pixels), "edges")


def edge_width(grey: np.ndarray, pixels: np.ndarray) -> float:
    """Return the median width of the edges at corners, shape (n, 2), along all directions together [px]."""
    return float(_widths(grey, pixels)[0])


def _describe(widths: np.ndarray, edges: str) -> str:
    """Return the reason by widths along all directions together, and along each [px]; empty if there is none."""
    width, along = float(widths[0]), widths[1:]
    if along.size and along.max() > MAX_MOTION and along.max() > _MOTION_RATIO * along.min():
        return (
            f"is blurred by motion: edges are {along.max():.1f} px wide along one direction and {along.min():.1f} "
            "along another; let the arm come to rest, or add light for a shorter exposure"
        )
    if width > MAX_EDGE_WIDTH:
        return f"is blurred: {edges} are {width:.1f} px wide; hold still, focus, add light"
    return ""


def _widths(grey: np.ndarray, pixels: np.ndarray, reach: int = 6) -> np.ndarray:
    """Return the median widths at corners [px], shape (1 + directions,): all directions together, then each."""
    gx, gy = _gradient(grey)
    widths = []
    for x, y in np.rint(pixels).astype(int):
        window = np.s_[max(y - reach, 0) : y + reach + 1, max(x - reach, 0) : x + reach + 1]
        low, high = np.percentile(grey[window], (5, 95))
        if high > low:
            slopes = np.stack([*_slopes(gx[window], gy[window])]).reshape(1 + len(_DIRECTIONS), -1)
            widths.append((high - low) / np.maximum(np.percentile(slopes, 95, axis=1), _LEAST_SLOPE))
    return np.median(widths, axis=0) if widths else np.full(1 + len(_DIRECTIONS), np.inf)


def _gradient(grey: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient of the brightness [1/px]."""
    return cv2.Sobel(grey, cv2.CV_32F, 1, 0, scale=1 / 8), cv2.Sobel(grey, cv2.CV_32F, 0, 1, scale=1 / 8)


def _slopes(gx: np.ndarray, gy: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the steepness of the brightness, and its slope along each direction [1/px]."""
    yield np.hypot(gx, gy)
    for angle in _DIRECTIONS.tolist():
        yield np.abs(np.cos(angle) * gx + np.sin(angle) * gy)
