"""Lens models: the projections of OpenCV's camera models and their derivatives, in numpy.

Points are in the camera's optical frame (REP 103): x right, y down, z forward [m]. Pixel (0, 0) is the centre of the
first pixel. Names of the models are those of ROS's `camera_info`:

- `plumb_bob` (k1 k2 p1 p2 k3): Brown's radial and tangential distortion.
- `rational_polynomial` (k1 k2 p1 p2 k3 k4 k5 k6): the same, with a quotient of two polynomials.
- `equidistant` (k1 k2 k3 k4): fisheye (Kannala and Brandt 2006), with a polynomial in the angle to the axis.
"""

from __future__ import annotations

import numpy as np

LENS_MODELS = {"pinhole": "rational_polynomial", "fisheye": "equidistant"}
"""Model that each kind of lens is calibrated with, by the name that users give to the kind."""
COEFFICIENTS = {"plumb_bob": 5, "rational_polynomial": 8, "equidistant": 4}
"""Number of distortion coefficients by model."""
_NEWTON_STEPS = 20


def distort(model: str, k: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project points through the lens to the image plane at distance 1.

    Args:
        model: Name of the model.
        k: Its coefficients.
        points: Points in the optical frame [m], shape (n, 3). Points behind a pinhole yield NaN.

    Returns:
        Distorted normalised coordinates, shape (n, 2), and their derivative by the points, shape (n, 2, 3) [1/m].
    """
    return _fisheye(k, points) if model == "equidistant" else _pinhole(k, points)


def _pinhole(k: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    depth = np.where(points[:, 2] > 1e-9, points[:, 2], np.nan)
    x, y = points[:, 0] / depth, points[:, 1] / depth
    u, v, xx, xy, yy = _brown(k, x, y)
    by_point = np.empty((len(points), 2, 3))
    by_point[:, 0, 0], by_point[:, 0, 1], by_point[:, 0, 2] = xx, xy, -(xx * x + xy * y)
    by_point[:, 1, 0], by_point[:, 1, 1], by_point[:, 1, 2] = xy, yy, -(xy * x + yy * y)
    return np.stack((u, v), axis=1), by_point / depth[:, None, None]


def _brown(k: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the distorted coordinates u, v of x, y, and the derivatives du/dx, du/dy = dv/dx, dv/dy."""
    coefficients: list[float] = k.tolist() + (8 - len(k)) * [0.0]
    k1, k2, p1, p2, k3, k4, k5, k6 = coefficients
    r = x * x + y * y
    top, bottom = 1.0 + r * (k1 + r * (k2 + r * k3)), 1.0 + r * (k4 + r * (k5 + r * k6))
    g = top / bottom
    slope = 2.0 * (k1 + r * (2 * k2 + r * 3 * k3) - g * (k4 + r * (2 * k5 + r * 3 * k6))) / bottom  # 2 dg/d(r^2)
    u = x * g + 2 * p1 * x * y + p2 * (r + 2 * x * x)
    v = y * g + p1 * (r + 2 * y * y) + 2 * p2 * x * y
    xx = g + x * x * slope + 2 * p1 * y + 6 * p2 * x
    xy = x * y * slope + 2 * p1 * x + 2 * p2 * y
    yy = g + y * y * slope + 6 * p1 * y + 2 * p2 * x
    return u, v, xx, xy, yy


def _fisheye(k: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x, y, z = points.T
    radius = np.maximum(np.hypot(x, y), 1e-12)
    square = radius**2 + z**2
    bent, slope = _bend(k, np.arctan2(radius, z))
    scale = bent / radius
    by_radius = (slope * z / square - scale) / radius
    by_depth = -slope / square
    distorted = np.stack((x * scale, y * scale), axis=1)
    cross = x * y / radius * by_radius
    rows = (
        np.stack((scale + x * x / radius * by_radius, cross, x * by_depth), axis=1),
        np.stack((cross, scale + y * y / radius * by_radius, y * by_depth), axis=1),
    )
    return distorted, np.stack(rows, axis=1)


def _bend(k: np.ndarray, angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distorted angle of a fisheye and its derivative by the angle."""
    a = angle * angle
    k1, k2, k3, k4 = k
    bent = angle * (1 + a * (k1 + a * (k2 + a * (k3 + a * k4))))
    return bent, 1 + a * (3 * k1 + a * (5 * k2 + a * (7 * k3 + a * 9 * k4)))


def by_coefficients(model: str, k: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the derivative of the distorted normalised coordinates by the k coefficients, shape (n, 2, k)."""
    if model == "equidistant":
        x, y, z = points.T
        radius = np.maximum(np.hypot(x, y), 1e-12)
        angle = np.arctan2(radius, z)
        powers = angle[:, None] ** np.array([3, 5, 7, 9])
        return points[:, :2, None] / radius[:, None, None] * powers[:, None, :]
    x, y = points[:, 0] / points[:, 2], points[:, 1] / points[:, 2]
    r = x * x + y * y
    _, _, _, _, k3, k4, k5, k6 = np.pad(k, (0, 8 - len(k)))
    bottom = 1.0 + r * (k4 + r * (k5 + r * k6))
    g = (1.0 + r * (k[0] + r * (k[1] + r * k3))) / bottom
    radial = np.stack((x, y), axis=1)[:, :, None] * (r[:, None] ** np.array([1, 2, 3]) / bottom[:, None])[:, None, :]
    p1 = np.stack((2 * x * y, r + 2 * y * y), axis=1)
    p2 = np.stack((r + 2 * x * x, 2 * x * y), axis=1)
    columns = [
        radial[:, :, 0],
        radial[:, :, 1],
        p1,
        p2,
        radial[:, :, 2],
        *np.moveaxis(-g[:, None, None] * radial, 2, 0),
    ]
    return np.stack(columns[: len(k)], axis=2)


def undistort(model: str, k: np.ndarray, distorted: np.ndarray) -> np.ndarray:
    """Invert `distort` by Newton's method.

    Args:
        model: Name of the model.
        k: Its coefficients.
        distorted: Distorted normalised coordinates, shape (n, 2).

    Returns:
        Rays of unit length in the optical frame, shape (n, 3); NaN where no ray projects to the point.
    """
    if model == "equidistant":
        radius = np.hypot(*distorted.T)
        angle = np.minimum(radius, 0.5 * np.pi)
        for _ in range(_NEWTON_STEPS):
            bent, slope = _bend(k, angle)
            angle = np.clip(angle - (bent - radius) / np.where(np.abs(slope) > 1e-6, slope, np.nan), 0.0, np.pi)
        angle = np.where(np.abs(_bend(k, angle)[0] - radius) < 1e-9, angle, np.nan)
        sine = np.sin(angle) / np.maximum(radius, 1e-12)
        return np.column_stack((distorted * sine[:, None], np.cos(angle)))
    x, y = distorted.T.copy()
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for _ in range(_NEWTON_STEPS):
            u, v, xx, xy, yy = _brown(k, x, y)
            u, v, determinant = u - distorted[:, 0], v - distorted[:, 1], xx * yy - xy * xy
            found = np.maximum(np.abs(u), np.abs(v)) < 1e-11
            if found.all():
                break
            x, y = x - (yy * u - xy * v) / determinant, y - (xx * v - xy * u) / determinant
    points = np.column_stack((x, y, np.ones(len(x))))
    points[~found] = np.nan
    return points / np.linalg.norm(points, axis=1, keepdims=True)
