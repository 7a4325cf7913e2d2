"""Where a board is, seen by a camera that is known; and the normal equations from which everything larger is built.

A small change d of a pose is (translation, rotation vector), applied on the left, `T <- exp(d) T`: in the camera's
frame. Pixel errors are weighted by Huber's function, so that a corner found in the wrong place counts little.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from calibration.camera.view import BadViewError, BoardView
from calibration.result import CameraIntrinsics
from robot_rl.geometry import Pose, quat_from_matrix

HUBER = 1.345
"""Where Huber's weights begin to fall, in standard deviations: 95 % efficiency for normal errors."""


def skew(vectors: np.ndarray) -> np.ndarray:
    """Cross product matrices `[v]x`, shape (..., 3, 3), of vectors of shape (..., 3)."""
    x, y, z = np.moveaxis(np.asarray(vectors, dtype=float), -1, 0)
    o = np.zeros_like(x)
    return np.stack([np.stack(row, -1) for row in ((o, -z, y), (z, o, -x), (-y, x, o))], -2)


def step(d: np.ndarray) -> Pose:
    """The pose `exp(d)` of a small change (translation [m], rotation vector [rad])."""
    return Pose.from_rotvec(d[:3], d[3:])


def adjoint(T: Pose) -> np.ndarray:
    """The matrix with `T exp(d) T^-1 = exp(adjoint(T) d)`, for changes (translation, rotation). Shape (6, 6)."""
    R = T.matrix
    return np.block([[R, skew(T.position) @ R], [np.zeros((3, 3)), R]])


@dataclass(frozen=True, eq=False)
class ViewTerms:
    """A view's part of a least squares problem, at one pose.

    Attributes:
        errors: Measured minus projected pixels, shape (n, 2).
        H: Normal matrix of the pose, `J^T W J` [1 / px^2 of noise], shape (6, 6).
        g: `J^T W errors`, shape (6,): `H d = g` is the step to a better pose.
        cost: Huber's cost, in units of the noise.
        J: Derivative of the projected pixels by the pose, shape (n, 2, 6).
        weights: Huber's weights over the squared noise, shape (n,).
    """

    errors: np.ndarray
    H: np.ndarray
    g: np.ndarray
    cost: float
    J: np.ndarray
    weights: np.ndarray


def view_terms(intrinsics: CameraIntrinsics, view: BoardView, T_camera_board: Pose, noise: float) -> ViewTerms:
    """The terms of a view, for corners that are measured with this much noise [px]."""
    points = view.points @ T_camera_board.matrix.T + T_camera_board.position
    projected, by_point = intrinsics.project_with_jacobian(points)
    errors = view.pixels - projected
    scaled, limit = np.linalg.norm(errors, axis=1) / noise, HUBER * np.sqrt(2.0)
    if not np.isfinite(scaled).all():  # behind the camera
        return ViewTerms(errors, np.eye(6), np.zeros(6), np.inf, np.zeros((len(errors), 2, 6)), np.zeros(len(errors)))
    weights = np.minimum(1.0, limit / np.maximum(scaled, 1e-12)) / noise**2
    cost = np.where(scaled <= limit, 0.5 * scaled**2, limit * (scaled - 0.5 * limit)).sum()
    J = np.concatenate((by_point, -by_point @ skew(points)), axis=2)
    H, g = weighted_product(weights, J, J), weighted_product(weights, J, errors[:, :, None])[:, 0]
    return ViewTerms(errors, H, g, float(cost), J, weights)


def weighted_product(weights: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Sum over corners of `weight A^T B`, shape (i, j), for weights (n,), A (n, 2, i) and B (n, 2, j)."""
    rows = 2 * len(weights)
    return (weights[:, None, None] * A).reshape(rows, -1).T @ B.reshape(rows, -1)


def board_pose(intrinsics: CameraIntrinsics, view: BoardView, noise: float = 0.3) -> tuple[Pose, ViewTerms]:
    """Pose of the board in the camera's frame, and its terms there.

    A plane seen from far has two poses that look almost alike (Collins and Bartoli, IPPE, 2014); both are refined, and
    the one that fits better is taken.

    Args:
        intrinsics: Of the camera.
        view: What it saw.
        noise: Of the corners, at which Huber's weights begin to fall [px].

    Raises:
        BadViewError: if no pose fits.
    """
    rays = intrinsics.rays(view.pixels)
    usable = np.isfinite(rays).all(axis=1) & (rays[:, 2] > 0.05)
    found: list[tuple[Pose, ViewTerms]] = []
    if usable.sum() >= 4:
        plane = rays[usable, :2] / rays[usable, 2:]
        try:
            _, rotations, translations, _ = cv2.solvePnPGeneric(
                view.points[usable], plane, np.eye(3), None, flags=cv2.SOLVEPNP_IPPE
            )
        except cv2.error:  # corners on one line
            rotations = translations = ()
        for rotvec, translation in zip(rotations, translations, strict=True):
            T = Pose(translation.ravel(), quat_from_matrix(cv2.Rodrigues(rotvec)[0]))
            if np.isfinite(T.vector()).all():
                found.append(refine_pose(intrinsics, view, T, noise))
    found = [(T, terms) for T, terms in found if np.isfinite(terms.cost)]
    if not found:
        raise BadViewError("no pose of the board fits its corners")
    return min(found, key=lambda pair: pair[1].cost)


def refine_pose(intrinsics: CameraIntrinsics, view: BoardView, T: Pose, noise: float) -> tuple[Pose, ViewTerms]:
    """The pose with the least cost near `T`, by Levenberg and Marquardt, and its terms there."""
    terms, damping = view_terms(intrinsics, view, T, noise), 1e-6
    for _ in range(20):
        if not np.isfinite(terms.cost):
            break
        d = np.linalg.solve(terms.H + damping * np.diag(np.diag(terms.H)), terms.g)
        T_new = step(d) @ T
        new = view_terms(intrinsics, view, T_new, noise)
        if new.cost <= terms.cost:
            converged = terms.cost - new.cost <= 1e-7 * terms.cost
            T, terms, damping = T_new, new, max(damping / 10, 1e-12)
            if converged:
                break
        else:
            damping *= 10
            if damping > 1e8:
                break
    return T, terms
