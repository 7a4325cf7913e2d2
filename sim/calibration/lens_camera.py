"""Simulated camera with the calibrated lens of a real one: focal lengths, principal point and distortion.

MuJoCo renders a perfect pinhole camera. This camera renders a wider and finer picture. Every pixel of the final picture
is the mean of a few rays through the lens.
"""

from __future__ import annotations

import mujoco
import numpy as np

from calibration.result import CameraIntrinsics
from robot_rl.errors import RenderError
from robot_rl.geometry import Pose, quat_multiply
from sim.render import open_renderer

_MAX_FIELD = 3.0
"""Largest tangent of the angle to the axis of one pinhole picture: a field of view of 143 degrees."""
_OPTICAL = np.array([0.0, 1.0, 0.0, 0.0])
"""Turns the optical frame (z forward, y down) into OpenGL's (z backward, y up), and back."""


class LensCamera:
    """Renderer of one camera of a model through a lens.

    Args:
        model: Scene; `camera`'s pose in it may change between pictures.
        camera: Name of the camera in the model, whose pose is used; its field of view is not.
        intrinsics: The lens.
        samples: Rays per pixel along each axis.

    Raises:
        RenderError: if the field of view of the lens is too large, or no OpenGL context can be made.
    """

    def __init__(self, model: mujoco.MjModel, camera: str, intrinsics: CameraIntrinsics, samples: int = 2) -> None:
        self._model, self._camera = model, model.camera(camera).id
        self._shape = intrinsics.height, intrinsics.width
        self._samples = samples
        offsets = (np.arange(samples) + 0.5) / samples - 0.5
        x = (np.arange(intrinsics.width)[:, None] + offsets).ravel()
        y = (np.arange(intrinsics.height)[:, None] + offsets).ravel()
        rays = intrinsics.rays(np.stack(np.meshgrid(x, y), axis=2).reshape(-1, 2))
        with np.errstate(invalid="ignore"):
            plane = rays[:, :2] / rays[:, 2:]
            seen = np.isfinite(plane).all(axis=1) & (rays[:, 2] > 0)
        field = np.abs(plane[seen]).max(axis=0) + 2.0 / intrinsics.fx
        if not seen.all() or field.max() > _MAX_FIELD:
            raise RenderError(
                f"the lens of camera {intrinsics.camera!r} sees more than "
                f"{2 * np.degrees(np.arctan(_MAX_FIELD)):.0f} deg, or its distortion folds over inside the "
                "picture; one rendered picture cannot show that"
            )
        focal = samples * max(intrinsics.fx, intrinsics.fy)
        width, height = (2 * np.ceil(field * focal)).astype(int).tolist()
        self._fovy = float(2 * np.degrees(np.arctan(0.5 * height / focal)))
        self._renderer = open_renderer(model, (height, width))
        column, row = plane[:, 0] * focal + (width - 1) / 2, plane[:, 1] * focal + (height - 1) / 2
        left, top = np.floor(column).astype(int), np.floor(row).astype(int)
        self._corner = top * width + left
        self._width = width
        self._right, self._down = (column - left).astype(np.float32), (row - top).astype(np.float32)

    def render(self, data: mujoco.MjData) -> np.ndarray:
        """Render the present scene, whose kinematics are up to date; RGB, uint8, shape (height, width, 3)."""
        wide = self._model.cam_fovy[self._camera]
        self._model.cam_fovy[self._camera] = self._fovy
        try:
            self._renderer.update_scene(data, camera=self._camera)
            source = self._renderer.render().reshape(-1, 3).astype(np.float32)
        finally:
            self._model.cam_fovy[self._camera] = wide
        i, right, down = self._corner, self._right[:, None], self._down[:, None]
        upper = source[i] + right * (source[i + 1] - source[i])
        lower = source[i + self._width] + right * (source[i + self._width + 1] - source[i + self._width])
        fine = upper + down * (lower - upper)
        (height, width), n = self._shape, self._samples
        mean = fine.reshape(height, n, width, n, 3).mean(axis=(1, 3))
        return np.rint(mean).astype(np.uint8)

    def close(self) -> None:
        """Releases the OpenGL context."""
        self._renderer.close()


def set_camera_pose(model: mujoco.MjModel, camera: str, T_parent_camera: Pose) -> None:
    """Set the pose of a camera, e.g. from a hand-eye calibration.

    Args:
        model: Scene.
        camera: Name of the camera.
        T_parent_camera: Pose of the optical frame in the frame of the body that the camera belongs to.
    """
    i = model.camera(camera).id
    model.cam_pos[i] = T_parent_camera.position
    model.cam_quat[i] = quat_multiply(T_parent_camera.quaternion, _OPTICAL)


def camera_pose(data: mujoco.MjData, model: mujoco.MjModel, camera: str) -> Pose:
    """Return the pose of a camera's optical frame in the base frame; the kinematics must be up to date."""
    i = model.camera(camera).id
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, data.cam_xmat[i])
    return Pose(data.cam_xpos[i].copy(), quat_multiply(quaternion, _OPTICAL))
