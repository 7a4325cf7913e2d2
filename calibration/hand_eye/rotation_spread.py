"""Check of the arm's rotations: rotations about two axes are needed to determine the pose of a camera."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

MIN_TURN, MIN_SECOND_TURN = np.radians(6.0), np.radians(3.0)
"""Least root mean square rotation between two views, about the main axis and about the second axis [rad]."""


def rotation_spread(poses: Sequence[Pose]) -> tuple[float, float, np.ndarray]:
    """Compute the rotations of the arm between views.

    Returns:
        Root mean square of the rotations between all pairs of views about the main axis and about the second axis
        [rad], and the main axis in the tcp's frame, shape (3,).
    """
    turns = np.array([(a.inverse() @ b).rotvec for i, a in enumerate(poses) for b in poses[i + 1 :]])
    if len(turns) == 0:
        return 0.0, 0.0, np.array([0.0, 0.0, 1.0])
    squares, axes = np.linalg.eigh(turns.T @ turns / len(turns))
    return float(np.sqrt(max(squares[2], 0.0))), float(np.sqrt(max(squares[1], 0.0))), axes[:, 2]


def check_rotations(poses: Sequence[Pose]) -> None:
    """Raise `CalibrationError` if the arm did not turn enough about two axes.

    Raises:
        CalibrationError: if it did not; the message names the views to add.
    """
    first, second, axis = rotation_spread(poses)
    if first < MIN_TURN:
        raise CalibrationError(
            f"the arm turned by only {np.degrees(first):.1f} deg between views (root mean square), needed are "
            f"{np.degrees(MIN_TURN):.0f}: motion without rotation does not determine the camera's pose; add views that "
            "are turned and tilted by 20 to 40 deg, each about another axis"
        )
    if second < MIN_SECOND_TURN:
        name = "xyz"[int(np.abs(axis).argmax())]
        raise CalibrationError(
            f"the arm turned about one axis only, near the tcp's {name} axis ({np.round(axis, 2).tolist()}; about any "
            f"other only {np.degrees(second):.1f} deg, needed are {np.degrees(MIN_SECOND_TURN):.0f}); add views tilted "
            "by 20 to 40 deg about the other axes"
        )
