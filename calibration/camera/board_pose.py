"""Pose of a board from one view of a known camera, and the normal equations of that view.

The other calibrations build on these normal equations. A small change d of a pose is (translation, rotation vector) in
the camera's frame; it is applied on the left, `T <- exp(d) T`. Huber's function weights the pixel errors, so that a
misplaced corner has little influence.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from calibration.camera.view import BadViewError, BoardView
from calibration.result import CameraIntrinsics
from robot_rl.geometry import Pose, quat_from_matrix

HUBER = 1.345
"""Error in standard deviations above which Huber's weights fall: 95 % efficiency for normal errors."""

CONVERGED = 1e-7
"""Relative change of the cost below which a pose is at its least cost."""
ROUGHLY = 1e-3
"""The same where the least cost need only be known to a few per cent."""
_HOPELESS = 10.0
"""Ratio of the cost of a guess to the least cost from another one above which its own will be no less."""


def skew(vectors: np.ndarray) -> np.ndarray:
    """Return the cross product matrices `[v]x`, shape (..., 3, 3), of vectors of shape (..., 3)."""
    vectors = np.asarray(vectors, dtype=float)
    matrices = np.zeros((*vectors.shape, 3))
    matrices[..., (2, 0, 1), (1, 2, 0)] = vectors
    matrices[..., (1, 2, 0), (2, 0, 1)] = -vectors
    return matrices


def step(d: np.ndarray) -> Pose:
    """Return the pose `exp(d)` of a small change (translation [m], rotation vector [rad])."""
    return Pose.from_rotvec(d[:3], d[3:])


def adjoint(T: Pose) -> np.ndarray:
    """Return the matrix with `T exp(d) T^-1 = exp(adjoint(T) d)` for small (translation, rotation) d. Shape (6, 6)."""
    R = T.matrix
    return np.block([[R, skew(T.position) @ R], [np.zeros((3, 3)), R]])


@dataclass(frozen=True, eq=False)
class ViewTerms:
    """Terms of one view in a least squares problem, at one pose of the board.

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
    """Return the terms of a view; `noise` is the standard deviation of its corners [px]."""
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
    """Sum `weight A^T B` over corners, for weights (n,), A (n, 2, i) and B (n, 2, j). Shape (i, j)."""
    rows = 2 * len(weights)
    return (weights[:, None, None] * A).reshape(rows, -1).T @ B.reshape(rows, -1)


def board_pose(
    intrinsics: CameraIntrinsics, view: BoardView, noise: float = 0.3, converged: float = CONVERGED
) -> tuple[Pose, ViewTerms]:
    """Return the pose of the board in the camera's frame, and the terms of the view there.

    A distant plane has two poses with almost the same picture (Collins and Bartoli, IPPE, 2014). The better one is
    refined, and the other one too where it is not much worse; the better fit is returned.

    Args:
        intrinsics: Camera and lens.
        view: View of the board.
        noise: Standard deviation of the corners, the unit of Huber's weights [px].
        converged: See `refine_pose`.

    Raises:
        BadViewError: if no pose fits.
    """
    rays = intrinsics.rays(view.pixels)
    usable = np.isfinite(rays).all(axis=1) & (rays[:, 2] > 0.05)
    guesses: list[tuple[float, Pose]] = []
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
                guesses.append((view_terms(intrinsics, view, T, noise).cost, T))
    best: tuple[Pose, ViewTerms] | None = None
    for cost, T in sorted(guesses, key=lambda guess: guess[0]):
        if best is None or cost <= _HOPELESS * best[1].cost:
            found = refine_pose(intrinsics, view, T, noise, converged)
            if np.isfinite(found[1].cost) and (best is None or found[1].cost < best[1].cost):
                best = found
    if best is None:
        raise BadViewError("no pose of the board fits its corners")
    return best


def refine_pose(
    intrinsics: CameraIntrinsics, view: BoardView, T: Pose, noise: float, converged: float = CONVERGED
) -> tuple[Pose, ViewTerms]:
    """Return the pose with the least cost near `T`, by Levenberg and Marquardt, and the terms of the view there.

    Args:
        intrinsics: Camera and lens.
        view: View of the board.
        T: First guess.
        noise: Standard deviation of the corners [px].
        converged: Relative change of the cost at which the search ends.
    """
    terms, damping = view_terms(intrinsics, view, T, noise), 1e-6
    for _ in range(20):
        if not np.isfinite(terms.cost):
            break
        d = np.linalg.solve(terms.H + damping * np.diag(np.diag(terms.H)), terms.g)
        T_new = step(d) @ T
        new = view_terms(intrinsics, view, T_new, noise)
        if new.cost <= terms.cost:
            ended = terms.cost - new.cost <= converged * terms.cost
            T, terms, damping = T_new, new, max(damping / 10, 1e-12)
            if ended:
                break
        else:
            damping *= 10
            if damping > 1e8:
                break
    return T, terms
