"""Robust start value of the hand-eye problem, for a few wrong poses or a wrong size of the board.

OpenCV's closed forms are exact for perfect data. They are evaluated on small random subsets of the views, and the
solution with the least robust cost over all views wins (random sample consensus; Fischler and Bolles 1981). Given the
rotation, the translation and the scale of the board are linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np

from calibration.hand_eye.problem import Guess, Sighting, scaled
from robot_rl.geometry import Pose, quat_from_matrix

METHODS = {
    "Tsai": cv2.CALIB_HAND_EYE_TSAI,
    "Park": cv2.CALIB_HAND_EYE_PARK,
    "Horaud": cv2.CALIB_HAND_EYE_HORAUD,
    "Andreff": cv2.CALIB_HAND_EYE_ANDREFF,
    "Daniilidis": cv2.CALIB_HAND_EYE_DANIILIDIS,
}
"""OpenCV's closed forms by their authors."""
_SUBSETS, _SUBSET_SIZE = 80, 4
_POSITION_SCALE, _ROTATION_SCALE = 2e-3, 4e-3
"""Scales of the robust cost: typical errors of a correct view [m, rad]."""


def closed_form(method: str, mounting: str, poses: Sequence[Pose], boards: Sequence[Pose]) -> Pose | None:
    """Compute X by one of OpenCV's solvers; return None if the solver fails.

    Args:
        method: Key of `METHODS`.
        mounting: `eye_in_hand` or `eye_to_hand`.
        poses: T_base_tcp of each view.
        boards: T_camera_board of each view.
    """
    arm = [_fixed_to_moving(mounting, T) for T in poses]
    try:
        R, t = cv2.calibrateHandEye(
            [T.matrix for T in arm],
            [T.position for T in arm],
            [T.matrix for T in boards],
            [T.position for T in boards],
            method=METHODS[method],
        )
    except cv2.error:
        return None
    if not (np.isfinite(R).all() and np.isfinite(t).all() and np.linalg.det(R) > 0.5):
        return None
    return Pose(t.ravel(), quat_from_matrix(R))


def consensus(
    mounting: str, sightings: Sequence[Sighting], boards: Sequence[Pose], rng: np.random.Generator
) -> tuple[Guess, float] | None:
    """Find a guess that most views agree with, and the ratio of the board's size to the stated one.

    Args:
        mounting: `eye_in_hand` or `eye_to_hand`.
        sightings: Views and poses of the arm.
        boards: T_camera_board of each view, for the stated size.
        rng: Generator of the random subsets.

    Returns:
        Guess and ratio; None if no subset has a solution.
    """
    poses = [sighting.T_base_tcp for sighting in sightings]
    everybody = list(range(len(poses)))
    subsets = [(everybody, method) for method in METHODS]
    size = min(_SUBSET_SIZE, len(poses))
    subsets += [(rng.choice(len(poses), size, replace=False).tolist(), "Park") for _ in range(_SUBSETS)]
    seen = _Poses.of([T.inverse() for T in boards] if mounting == "eye_in_hand" else boards)
    held = _Poses.of(poses)
    best: tuple[float, Pose, Pose, float] | None = None
    for chosen, method in subsets:
        X = closed_form(method, mounting, [poses[i] for i in chosen], [boards[i] for i in chosen])
        if X is None:
            continue
        answer = _complete(mounting, X, [poses[i] for i in chosen], [boards[i] for i in chosen])
        if answer is None:
            continue
        X, Y, scale = answer
        before, after = (Y, X.inverse()) if mounting == "eye_in_hand" else (X, Y.inverse())
        cost = _disagreement(before, seen, after, scale, held)
        if best is None or cost < best[0]:
            best = cost, X, Y, scale
    if best is None:
        return None
    _, X, Y, scale = best
    return Guess(mounting, X, Y, tuple(scaled(T, scale) for T in boards)), scale


def _fixed_to_moving(mounting: str, T_base_tcp: Pose) -> Pose:
    """Return the pose M of the arm with the same `M X T_camera_board` for all views."""
    return T_base_tcp if mounting == "eye_in_hand" else T_base_tcp.inverse()


def _complete(mounting: str, X: Pose, poses: Sequence[Pose], boards: Sequence[Pose]) -> tuple[Pose, Pose, float] | None:
    """Solve for X, Y and the scale of the board, given the rotation of X: `M (X T)` is constant and linear in them."""
    arm = [_fixed_to_moving(mounting, T) for T in poses]
    blocks = [
        np.column_stack((M.matrix, M.matrix @ X.matrix @ T.position, -np.eye(3)))
        for M, T in zip(arm, boards, strict=True)
    ]
    unknown, _, rank, _ = np.linalg.lstsq(
        np.concatenate(blocks), -np.concatenate([M.position for M in arm]), rcond=1e-9
    )
    scale = float(unknown[3])
    if rank < 7 or not 0.2 < scale < 5.0:
        return None
    X = Pose(unknown[:3], X.quaternion)
    turns = sum((M @ X @ T).matrix for M, T in zip(arm, boards, strict=True))
    U, _, Vt = np.linalg.svd(turns)  # the rotation nearest to the mean
    R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
    return X, Pose(unknown[4:], quat_from_matrix(R)), scale


class _Poses(NamedTuple):
    """Positions [m], shape (n, 3), and rotation matrices, shape (n, 3, 3)."""

    positions: np.ndarray
    matrices: np.ndarray

    @classmethod
    def of(cls, poses: Sequence[Pose]) -> _Poses:
        return cls(np.array([T.position for T in poses]), np.array([T.matrix for T in poses]))


def _disagreement(before: Pose, seen: _Poses, after: Pose, scale: float, held: _Poses) -> float:
    """Return Cauchy's robust cost of all views: it grows slowly, so that wrong views have little influence.

    Args:
        before: With `seen` and `after` it predicts the pose of the arm: `T_base_tcp = before @ seen @ after`.
        seen: What each view says, for the stated size of the board.
        after: See `before`.
        scale: Ratio of the board's size to the stated one.
        held: T_base_tcp of each view.
    """
    turned = seen.matrices @ after.matrix
    positions = before.position + (scale * seen.positions + seen.matrices @ after.position) @ before.matrix.T
    distances = np.linalg.norm(positions - held.positions, axis=1)
    chords = np.linalg.norm(before.matrix @ turned - held.matrices, axis=(1, 2))
    angles = 2.0 * np.arcsin(np.minimum(chords / np.sqrt(8.0), 1.0))
    return float(np.log1p((distances / _POSITION_SCALE) ** 2 + (angles / _ROTATION_SCALE) ** 2).sum())
