"""The hand-eye problem as a linear mixed model around a guess; fit, checks and planner share it.

The unknowns are X, the camera in the frame that it is fixed to, and Y, the board in the frame that it is fixed to:

    eye in hand:  T_base_tcp X T_camera_board = Y      X = T_tcp_camera,  Y = T_base_board
    eye to hand:  T_base_tcp Y = X T_camera_board      X = T_base_camera, Y = T_tcp_board

A picture measures T_camera_board with pixel noise, and the arm measures T_base_tcp with noise of its own. The model has
both errors. Schur's complement eliminates the pose of each view. Six numbers of a view remain: the error e of the arm's
pose, `e = log(T_base_tcp^-1 T_predicted)` in the tcp's frame, whose covariance is the sum of those of picture and arm.
A small change of X, of Y or of a view's pose T_camera_board changes e linearly.

The lens may be unknown, too, within the uncertainty of its calibration: a change of the lens changes the best pose for
each picture. The information of the pictures alone on the lens is not used. If the lens was calibrated from the same
pictures, its calibration contains that information already, and it must not be used twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from calibration.camera.board_pose import adjoint, step, view_terms, weighted_product
from calibration.camera.intrinsics import parameter_derivative
from calibration.camera.view import BoardView
from calibration.result import CameraIntrinsics
from robot_rl.geometry import Pose


@dataclass(frozen=True, eq=False)
class Sighting:
    """A view of the board, the pose of the arm that was measured at that time, and the time [ns], if it is known."""

    view: BoardView
    T_base_tcp: Pose
    stamp: int | None = None


@dataclass(frozen=True, eq=False)
class Guess:
    """Estimated poses of camera and board.

    Attributes:
        mounting: `eye_in_hand` or `eye_to_hand`.
        X: The camera in the frame that it is fixed to.
        Y: The board in the frame that it is fixed to.
        boards: T_camera_board of each view.
    """

    mounting: str
    X: Pose
    Y: Pose
    boards: tuple[Pose, ...]

    def predict_tcp(self, T_camera_board: Pose) -> Pose:
        """Return T_base_tcp for a board at `T_camera_board`."""
        if self.mounting == "eye_in_hand":
            return self.Y @ T_camera_board.inverse() @ self.X.inverse()
        return self.X @ T_camera_board @ self.Y.inverse()

    def predict_board(self, T_base_tcp: Pose) -> Pose:
        """Return T_camera_board for an arm at `T_base_tcp`."""
        if self.mounting == "eye_in_hand":
            return self.X.inverse() @ T_base_tcp.inverse() @ self.Y
        return self.X.inverse() @ T_base_tcp @ self.Y

    def moved(self, z: np.ndarray, d: Sequence[np.ndarray]) -> Guess:
        """Apply `X <- X exp(z[:6])`, `Y <- Y exp(z[6:12])` and `T_camera_board <- exp(d) T_camera_board`."""
        boards = tuple(step(change) @ T for change, T in zip(d, self.boards, strict=True))
        return replace(self, X=self.X @ step(z[:6]), Y=self.Y @ step(z[6:12]), boards=boards)


@dataclass(frozen=True, eq=False)
class Row:
    """One view of the linear model `e + G z ~ N(0, picture + arm)`.

    Attributes:
        e: Error of the arm's pose [m, rad], the view's pose being the best for its picture, shape (6,).
        G: Its derivative by changes of X and Y, of the board's scale if that is free, and of the lens along the m
            directions in which that is free, shape (6, 12 + m or 13 + m).
        picture: Covariance of e from the pixel noise, shape (6, 6).
        d: The step to the best pose for the picture, shape (6,).
        H_inverse: Its covariance, shape (6, 6).
        by_pose: Derivative of e by the pose of the view, shape (6, 6).
        by_lens: Derivative of the best pose for the picture by the lens, shape (6, m).
    """

    e: np.ndarray
    G: np.ndarray
    picture: np.ndarray
    d: np.ndarray
    H_inverse: np.ndarray
    by_pose: np.ndarray
    by_lens: np.ndarray


def derivatives(guess: Guess, T_camera_board: Pose) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of e by (X, Y), shape (6, 12), and by the view's pose, shape (6, 6), for small e."""
    if guess.mounting == "eye_in_hand":
        by_X = -adjoint(guess.X)
        return np.hstack((by_X, adjoint(guess.X @ T_camera_board))), by_X
    by_X = adjoint(guess.Y @ T_camera_board.inverse())
    return np.hstack((by_X, -adjoint(guess.Y))), by_X


def linearise(
    intrinsics: CameraIntrinsics,
    sightings: Sequence[Sighting],
    guess: Guess,
    noise: float,
    *,
    scale: bool,
    directions: np.ndarray | None = None,
) -> list[Row]:
    """Linearise the model around a guess.

    Args:
        intrinsics: Camera and lens.
        sightings: Views and poses of the arm.
        guess: Point of the linearisation.
        noise: Standard deviation of the corners [px].
        scale: Whether the size of the board is free: the column after X and Y is then its relative change.
        directions: Free changes of `intrinsics.vector`, shape (parameters, m): the last columns. None: m is 0.
    """
    rows = []
    for sighting, T in zip(sightings, guess.boards, strict=True):
        terms = view_terms(intrinsics, sighting.view, T, noise)
        H_inverse = np.linalg.inv(terms.H)
        by_lens = np.zeros((6, 0))
        if directions is not None and directions.shape[1]:
            J = parameter_derivative(intrinsics, sighting.view.points @ T.matrix.T + T.position)
            by_lens = -H_inverse @ weighted_product(terms.weights, terms.J, J) @ directions
        row = make_row(guess, T, sighting.T_base_tcp, H_inverse, H_inverse @ terms.g, scale=scale)
        rows.append(replace(row, G=np.column_stack((row.G, row.by_pose @ by_lens)), by_lens=by_lens))
    return rows


def make_row(
    guess: Guess, T_camera_board: Pose, T_base_tcp: Pose, H_inverse: np.ndarray, d: np.ndarray, *, scale: bool = False
) -> Row:
    """Make one view of the model from the terms of its picture; the arguments are as in `Row` and `linearise`."""
    G, by_pose = derivatives(guess, T_camera_board)
    if scale:  # a larger board is proportionally farther away
        G = np.column_stack((G, by_pose[:, :3] @ T_camera_board.position))
    error = (T_base_tcp.inverse() @ guess.predict_tcp(T_camera_board)).vector()
    return Row(error + by_pose @ d, G, by_pose @ H_inverse @ by_pose.T, d, H_inverse, by_pose, np.zeros((6, 0)))


@dataclass(frozen=True, eq=False)
class Solution:
    """The best linear estimate of a change of X and Y, of the board's scale and of the lens.

    Attributes:
        z: The change, in the order of the columns of `Row.G`.
        covariance: Covariance of the change.
        left: Error of each view after the change, `e + G z`, shape (n, 6).
        weights: Inverse covariance of each view's e, shape (n, 6, 6).
        likelihood: Minus twice the logarithm of the restricted likelihood, up to a constant.
    """

    z: np.ndarray
    covariance: np.ndarray
    left: np.ndarray
    weights: np.ndarray
    likelihood: float


_NOTHING = np.zeros(0)


def solve(
    rows: Sequence[Row], position_noise: float, rotation_noise: float, deviations: np.ndarray = _NOTHING
) -> Solution:
    """Solve the model by generalised least squares, for given noise of the arm.

    Args:
        rows: The views.
        position_noise: Noise of the arm's poses per axis [m].
        rotation_noise: Noise of the arm's poses per axis [rad].
        deviations: Change of the lens so far along each of its m directions, which are the last columns; its prior has
            mean 0 and standard deviation 1. Shape (m,).

    Raises:
        numpy.linalg.LinAlgError: if the views do not determine X and Y.
    """
    arm = np.diag(np.repeat([position_noise**2, rotation_noise**2], 3))
    S = np.stack([row.picture for row in rows]) + arm
    weights = np.linalg.inv(S)
    G, e = np.stack([row.G for row in rows]), np.stack([row.e for row in rows])
    GW = np.swapaxes(G, 1, 2) @ weights
    normal = (GW @ G).sum(axis=0)
    slope = (GW @ e[:, :, None]).sum(axis=0)[:, 0]
    lens = slice(len(slope) - len(deviations), None)
    normal[lens, lens] += np.eye(len(deviations))
    slope[lens] += deviations
    # Metres and radians differ by orders of magnitude; scaling makes the inversion well conditioned.
    if not (np.diag(normal) > 0).all():
        raise np.linalg.LinAlgError("the least squares problem has no finite solution")
    unit = 1.0 / np.sqrt(np.diag(normal))
    covariance = np.linalg.inv(normal * np.outer(unit, unit)) * np.outer(unit, unit)
    z = -covariance @ slope
    if not np.isfinite(z).all():
        raise np.linalg.LinAlgError("the least squares problem has no finite solution")
    left = e + G @ z
    misfit = float((left[:, None] @ weights @ left[:, :, None]).sum() + ((deviations + z[lens]) ** 2).sum())
    likelihood = misfit + np.linalg.slogdet(S)[1].sum() - np.linalg.slogdet(covariance)[1]
    return Solution(z, covariance, left, weights, float(likelihood))


def estimate_noise(
    rows: Sequence[Row], start: tuple[float, float], deviations: np.ndarray = _NOTHING
) -> tuple[float, float]:
    """Estimate the noise of the arm by restricted maximum likelihood (Patterson and Thompson 1971).

    Args:
        rows: The views.
        start: First guess of position and rotation noise per axis [m, rad].
        deviations: See `solve`.

    Returns:
        Position and rotation noise per axis [m, rad].

    Raises:
        numpy.linalg.LinAlgError: if the views do not determine X and Y.
    """

    def cost(logarithms: np.ndarray) -> tuple[float, np.ndarray]:
        position, rotation = np.exp(logarithms).tolist()
        try:
            solution = solve(rows, position, rotation, deviations)
        except np.linalg.LinAlgError:
            return 1e300, np.zeros(2)  # finite, so that differences are
        return solution.likelihood, 2.0 * np.exp(2.0 * logarithms) * _slope(rows, solution).reshape(2, 3).sum(axis=1)

    limits = np.log([1e-6, 1e-1])
    best = minimize(cost, np.log(start).clip(*limits), jac=True, method="L-BFGS-B", bounds=[limits] * 2)
    position, rotation = np.exp(best.x).tolist()
    return position, rotation


def _slope(rows: Sequence[Row], solution: Solution) -> np.ndarray:
    """Return how the likelihood changes with the variance of the arm's poses along each axis, shape (6,).

    For an axis j it is sum_i [W - W G C G^T W]_jj - [W r]_j^2, by Patterson and Thompson 1971, eq. 10.
    """
    influence = solution.weights @ np.stack([row.G for row in rows])
    explained = ((influence @ solution.covariance) * influence).sum(axis=-1)
    pull = (solution.weights @ solution.left[:, :, None])[:, :, 0]
    slope: np.ndarray = (np.diagonal(solution.weights, axis1=1, axis2=2) - explained - pull**2).sum(axis=0)
    return slope


def scaled(T_camera_board: Pose, factor: float) -> Pose:
    """Return the pose of a board that is larger than stated by this factor."""
    return Pose(factor * T_camera_board.position, T_camera_board.quaternion)


def resized(sighting: Sighting, factor: float) -> Sighting:
    """Return the same picture of a board that is larger by this factor."""
    return replace(sighting, view=replace(sighting.view, points=factor * sighting.view.points))
