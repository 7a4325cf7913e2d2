"""Planner of poses of the arm whose pictures of the board carry most information on the camera's pose.

The planner draws many random poses that are allowed and show the board. It then selects one pose after the other, the
one that most reduces the uncertainty of the camera's pose (greedy D-optimal design; Fedorov 1972). The pose of the
board is unknown, too, and so is the lens, within the uncertainty of its calibration: an error of the principal point
resembles a rotation of the camera. The uncertainty is that of the linear model of the calibration itself; the same
pictures may calibrate the lens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.camera.board import Board
from calibration.camera.board_pose import view_terms, weighted_product
from calibration.camera.intrinsics import parameter_derivative
from calibration.camera.lens_prior import LensPrior
from calibration.camera.view import BoardView
from calibration.hand_eye.problem import Guess, Sighting, linearise
from calibration.result import CameraIntrinsics
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, rotvec_from_quat

_CANDIDATES, _TRIES = 120, 6000
_MIN_SHOWN = 0.6
"""Least share of the board's corners in the picture."""
_DISTORTION_SIGMA = 0.2
"""Standard deviation of distortion coefficients before they are calibrated."""
_RIM = 0.02
"""Margin at the picture's edge, relative to its width."""


@dataclass(frozen=True, eq=False)
class SafetyBox:
    """Limits of the tcp's pose.

    Attributes:
        low: Smallest position in the base frame [m], shape (3,).
        high: Largest position [m], shape (3,).
        orientation: Reference quaternion (w, x, y, z) of the tcp.
        max_turn: Largest rotation from the reference [rad].
    """

    low: np.ndarray
    high: np.ndarray
    orientation: np.ndarray
    max_turn: float

    def allows(self, T_base_tcp: Pose) -> bool:
        """Return whether the tcp may be at this pose."""
        inside = (self.low <= T_base_tcp.position).all() and (T_base_tcp.position <= self.high).all()
        turn = rotvec_from_quat(quat_multiply(quat_conjugate(self.orientation), T_base_tcp.quaternion))
        return bool(inside and np.linalg.norm(turn) <= self.max_turn)


def plan_poses(
    intrinsics: CameraIntrinsics,
    board: Board,
    guess: Guess,
    box: SafetyBox,
    count: int,
    *,
    reachable: Callable[[Pose], bool] | None = None,
    pixel_noise: float = 0.15,
    position_noise: float = 2e-4,
    rotation_noise: float = 1e-3,
    seed: int = 0,
) -> list[Pose]:
    """Plan poses of the tcp to take pictures from, in an order with short paths.

    Args:
        intrinsics: Camera and lens; without a covariance, the uncertainty of a data sheet is assumed.
        board: The board.
        guess: Rough poses of camera and board, e.g. from a fit of the first few views.
        box: Limits of the tcp.
        count: Number of poses.
        reachable: Whether the arm can reach a pose inside the box; None accepts all.
        pixel_noise: Expected noise of the corners [px].
        position_noise: Expected noise of the arm [m].
        rotation_noise: Expected noise of the arm [rad].
        seed: Seed of the random candidates.

    Raises:
        CalibrationError: if there are too few poses inside the box from which the board is seen.
    """
    rng = np.random.default_rng(seed)
    sightings = _candidates(intrinsics, board, guess, box, reachable, rng)
    if len(sightings) < count:
        raise CalibrationError(
            f"only {len(sightings)} of {_TRIES} random poses inside the safety box show the board, needed are {count}; "
            "move the board to where the camera sees it, or enlarge the box or the turn that it allows"
        )
    boards = tuple(guess.predict_board(sighting.T_base_tcp) for sighting in sightings)
    lens = LensPrior.from_intrinsics(
        intrinsics if intrinsics.covariance else _with_datasheet_uncertainty(intrinsics)
    ).directions
    rows = linearise(intrinsics, sightings, replace(guess, boards=boards), pixel_noise, scale=False, directions=lens)
    arm = np.diag(np.repeat([position_noise**2, rotation_noise**2], 3))
    information = np.stack([row.G.T @ np.linalg.solve(row.picture + arm, row.G) for row in rows])
    for known, sighting, T in zip(information, sightings, boards, strict=True):
        known[12:, 12:] += _lens_information(intrinsics, sighting, T, pixel_noise, lens)
    chosen = _most_informative(information, count)
    return _short_route([sightings[i].T_base_tcp for i in chosen])


def initial_poses(
    T_base_tcp: Pose, box: SafetyBox, *, turn: float = 0.28, step: float = 0.02, count: int = 8, phase: float = 0.0
) -> list[Pose]:
    """Plan poses near one that shows the board, while the poses of camera and board are unknown.

    The rotations suffice for a first fit, and an ordinary camera keeps most of the board in its picture. The poses also
    move along the tool: pure rotation does not determine the size of the board.

    Args:
        T_base_tcp: Pose that shows the board.
        box: Limits of the tcp; poses outside are left out.
        turn: Rotation of each pose [rad].
        step: Translation of each pose along the tool [m].
        count: Number of directions.
        phase: Angle of the first direction [rad].
    """
    poses = []
    for i in range(count):
        angle = phase + 2.0 * np.pi * i / count
        turned = turn * np.array([np.cos(angle), np.sin(angle), 0.8 * (-1.0) ** i])
        moved = np.array([0.0, 0.0, step * (-1.0) ** (i // 2)])
        poses.append(T_base_tcp @ Pose.from_rotvec(moved, turned))
    return [pose for pose in poses if box.allows(pose)]


def _candidates(
    intrinsics: CameraIntrinsics,
    board: Board,
    guess: Guess,
    box: SafetyBox,
    reachable: Callable[[Pose], bool] | None,
    rng: np.random.Generator,
) -> list[Sighting]:
    size = np.array([intrinsics.width, intrinsics.height])
    middle = np.append(0.5 * np.array(board.extent), 0.0)
    # At this distance the board is as wide as the picture.
    near = max(board.extent) * intrinsics.fx / intrinsics.width
    found: list[Sighting] = []
    for _ in range(_TRIES):
        if len(found) == _CANDIDATES:
            break
        place = rng.uniform(0.25, 0.75, 2) * size
        ray = intrinsics.rays(place[None])[0]
        if not np.isfinite(ray).all():
            continue
        spin, tilt = rng.uniform(-np.pi, np.pi), rng.uniform(-0.9, 0.9, 2)
        turned = Pose.from_rotvec(np.zeros(3), np.append(tilt, 0.0)) @ Pose.from_rotvec(
            np.zeros(3), np.array([0.0, 0.0, spin])
        )
        distance = near * rng.uniform(1.0, 2.2)
        T_camera_board = Pose(distance * ray - turned.matrix @ middle, turned.quaternion)
        T_base_tcp = guess.predict_tcp(T_camera_board)
        if not box.allows(T_base_tcp):
            continue
        pixels = intrinsics.project(board.corners @ T_camera_board.matrix.T + T_camera_board.position)
        rim = _RIM * intrinsics.width
        shown = ((pixels >= rim) & (pixels <= size - 1 - rim)).all(axis=1)
        if shown.mean() < _MIN_SHOWN or (reachable is not None and not reachable(T_base_tcp)):
            continue
        ids = np.flatnonzero(shown)
        view = BoardView(
            f"pose {len(found)}", (intrinsics.width, intrinsics.height), ids, pixels[ids], board.corners[ids]
        )
        found.append(Sighting(view, T_base_tcp))
    return found


def _with_datasheet_uncertainty(intrinsics: CameraIntrinsics) -> CameraIntrinsics:
    """Return the camera with the uncertainty of a data sheet."""
    sigma = np.concatenate((0.01 * intrinsics.vector[:2], np.full(2, 0.015 * intrinsics.width)))
    sigma = np.append(sigma, np.full(len(intrinsics.distortion), _DISTORTION_SIGMA))
    return replace(intrinsics, covariance=tuple(map(tuple, np.diag(sigma**2).tolist())))


def _lens_information(
    intrinsics: CameraIntrinsics, sighting: Sighting, T_camera_board: Pose, noise: float, directions: np.ndarray
) -> np.ndarray:
    """Return the information of one picture on the lens directions, the board's pose unknown, shape (m, m)."""
    terms = view_terms(intrinsics, sighting.view, T_camera_board, noise)
    points = sighting.view.points @ T_camera_board.matrix.T + T_camera_board.position
    J = parameter_derivative(intrinsics, points) @ directions
    coupling = weighted_product(terms.weights, terms.J, J)
    return weighted_product(terms.weights, J, J) - coupling.T @ np.linalg.solve(terms.H, coupling)


def _most_informative(information: np.ndarray, count: int) -> list[int]:
    """Choose candidates greedily by the determinant of the information on X, with Y and the lens unknown.

    Args:
        information: Information of each candidate on (X, Y, lens), the lens in standard deviations of its prior, shape
            (n, 12 + m, 12 + m).
        count: Number of candidates to choose.
    """
    rigid = np.mean([np.diag(matrix)[:12] for matrix in information], axis=0)
    scale = np.concatenate((1.0 / np.sqrt(rigid), np.ones(information.shape[1] - 12)))
    information = information * np.outer(scale, scale)
    known = np.diag(np.where(np.arange(len(scale)) < 12, 1e-6, 1.0))
    chosen: list[int] = []
    for _ in range(count):
        total = known + information
        gain = np.linalg.slogdet(total)[1] - np.linalg.slogdet(total[:, 6:, 6:])[1]
        gain[chosen] = -np.inf
        chosen.append(int(gain.argmax()))
        known = total[chosen[-1]]
    return chosen


def _short_route(poses: Sequence[Pose]) -> list[Pose]:
    """Order poses by going to the nearest one that is left; 10 cm are as far as 30 degrees."""
    left, order = list(poses[1:]), [poses[0]]
    while left:
        changes = [(order[-1].inverse() @ pose).vector() for pose in left]
        distances = [np.linalg.norm(c[:3]) / 0.1 + np.linalg.norm(c[3:]) / np.radians(30) for c in changes]
        order.append(left.pop(int(np.argmin(distances))))
    return order
