"""How the operator sees the robot in a picture: which way a key has to move the tool so that it goes there in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from robot_rl.console.protocol import BadMessageError
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.env.robot_io import RobotState
from robot_rl.env.supervision import Supervised
from robot_rl.geometry import quat_to_matrix

Mounts = Mapping[str, CameraMount]
"""Of cameras by name; more may come in time."""
LEVEL = 0.1
"""Length below which right and up of a picture cancel each other: the camera looks up at the robot."""


class PictureView(NamedTuple):
    """The base frame as a picture shows it.

    Attributes:
        heading: Direction of the base's horizontal plane that leads away in the picture, or up in it where the camera
            looks down: turn about the base's z against its x [rad].
        axes: The base's x, y and z as seen: shape (3, 2), to the right and up in the picture, of length 1 or less.
    """

    heading: float
    axes: np.ndarray


def picture_view(R_base_camera: np.ndarray) -> PictureView:
    """Return how a camera of this attitude sees the base frame.

    The heading is the angle h for which the horizontal directions ahead, (cos h, sin h), and right, (sin h, -cos h),
    agree best with up and right of the picture: the largest sum of the two dot products.

    Args:
        R_base_camera: Rotation of the optical frame, shape (3, 3).
    """
    right, up = R_base_camera[:, 0], -R_base_camera[:, 1]
    ahead_by_right = np.array([-right[1], right[0]])  # a quarter turn to the left of what is right
    ahead = up[:2] + ahead_by_right
    if np.linalg.norm(ahead) < LEVEL:
        ahead = ahead_by_right
    return PictureView(math.atan2(ahead[1], ahead[0]), np.stack((right, up), axis=1))


def along_base(axes: Sequence[float], heading: float) -> list[float]:
    """Turn deflections that are meant as seen (ahead, left, up) into those along the base's axes.

    Args:
        axes: Translation and rotation, each in [-1, 1], length 6.
        heading: Of the view [rad].

    Returns:
        The same deflections in the base frame; in [-1, 1], shortened where a turned corner would stick out.
    """
    cosine, sine = math.cos(heading), math.sin(heading)
    turned: list[float] = []
    for x, y, z in (axes[:3], axes[3:]):
        part = (cosine * x - sine * y, sine * x + cosine * y, z)
        excess = max(1.0, *map(abs, part))
        turned += [value / excess for value in part]
    return turned


class CameraViews:
    """The views of the cameras whose pose is known.

    Args:
        mounts: Of these cameras, by name.
        supervision: Of the robot.
    """

    def __init__(self, mounts: Mounts, supervision: Supervised) -> None:
        self._mounts, self._supervision = mounts, supervision

    def now(self) -> dict[str, PictureView]:
        """Return the present views by camera; those on the tool turn with it."""
        latest = self._supervision.io.latest
        return {} if latest is None else {name: self._view(name, latest) for name in tuple(self._mounts)}

    def facts(self) -> dict[str, Any]:
        """Return the present views for a page."""
        return {
            name: {"heading": round(view.heading, 4), "axes": np.round(view.axes, 4).tolist()}
            for name, view in self.now().items()
        }

    def along_base(self, axes: list[float], camera: str) -> list[float]:
        """Return deflections along the base's axes that were meant as a camera sees them; without a name, as they are.

        Raises:
            BadMessageError: if the pose of that camera is not known.
        """
        if not camera:
            return axes
        latest = self._supervision.io.latest
        if camera not in self._mounts or latest is None:
            known = ", ".join(self._mounts) or "none"
            raise BadMessageError(f"camera: the pose of {camera!r} is not known; known: {known}")
        return along_base(axes, self._view(camera, latest).heading)

    def _view(self, camera: str, state: RobotState) -> PictureView:
        return picture_view(quat_to_matrix(self._mounts[camera].in_base(state.T_base_tcp).quaternion))
