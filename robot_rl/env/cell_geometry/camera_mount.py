"""Where a camera is fixed, and how it stands: what its calibration found, or what a simulation knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from robot_rl.geometry import Pose


@dataclass(frozen=True)
class CameraMount:
    """The pose of a camera's optical frame: x right, y down in the picture, z forward.

    Attributes:
        parent: What the camera is fixed to: the robot's `base`, or its `tcp`.
        position: In the frame of the parent [m].
        quaternion: Its attitude in that frame, (w, x, y, z).
    """

    parent: Literal["base", "tcp"]
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]

    @classmethod
    def of(cls, parent: Literal["base", "tcp"], T_parent_camera: Pose) -> CameraMount:
        """Return the mount of that pose."""
        x, y, z = T_parent_camera.position.tolist()
        a, b, c, d = T_parent_camera.quaternion.tolist()
        return cls(parent, (x, y, z), (a, b, c, d))

    @property
    def pose(self) -> Pose:
        """Return T_parent_camera."""
        return Pose(np.array(self.position), np.array(self.quaternion))

    def in_base(self, T_base_tcp: Pose) -> Pose:
        """Return T_base_camera, with the tcp at this pose."""
        return T_base_tcp @ self.pose if self.parent == "tcp" else self.pose
