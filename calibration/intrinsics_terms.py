"""How pixels change with the numbers of a camera model."""

from __future__ import annotations

import numpy as np

from calibration.result import CameraIntrinsics
from calibration.result.lens import by_coefficients, distort


def parameter_derivative(intrinsics: CameraIntrinsics, points: np.ndarray) -> np.ndarray:
    """Derivative of the pixels by (fx, fy, cx, cy, *distortion).

    Args:
        intrinsics: Of the camera.
        points: In the optical frame [m], shape (n, 3).

    Returns:
        Shape (n, 2, 4 + number of distortion coefficients).
    """
    k = np.array(intrinsics.distortion)
    plane, _ = distort(intrinsics.model, k, points)
    by_focal = plane[:, :, None] * np.eye(2)
    by_center = np.broadcast_to(np.eye(2), (len(points), 2, 2))
    focal = np.array([[intrinsics.fx], [intrinsics.fy]])
    return np.concatenate((by_focal, by_center, focal * by_coefficients(intrinsics.model, k, points)), axis=2)
