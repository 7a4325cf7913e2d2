"""The simulated camera with a real lens: what it renders is where its intrinsics and its pose say."""

import mujoco
import numpy as np
import pytest

from calibration.result import CameraIntrinsics
from robot_rl.errors import RenderError
from robot_rl.geometry import Pose
from sim.calibration.lens_camera import LensCamera, camera_pose, set_camera_pose

LENSES = {
    "pinhole": CameraIntrinsics(
        "c", 320, 240, "rational_polynomial", 300.0, 295.0, 170.0, 112.0, (-0.2, 0.05, 1e-3, -2e-3, 0, 0.02, 0, 0)
    ),
    "fisheye": CameraIntrinsics("c", 320, 240, "equidistant", 185.0, 186.0, 161.0, 118.0, (-0.02, 0.01, 0.0, 0.0)),
}


def scene(points):
    """Small bright balls in the dark, and a camera on a body that is turned and shifted."""
    spec = mujoco.MjSpec()
    spec.visual.headlight.ambient = (1.0, 1.0, 1.0)
    spec.visual.headlight.diffuse = spec.visual.headlight.specular = (0.0, 0.0, 0.0)
    body = spec.worldbody.add_body(name="mast", pos=(0.1, -0.2, 0.3), quat=(0.5, 0.5, 0.5, 0.5))
    body.add_camera(name="eye")
    for point in points:
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=(0.004, 0, 0),
            pos=point,
            rgba=(1, 1, 1, 1),
            contype=0,
            conaffinity=0,
        )
    return spec.compile()


@pytest.mark.parametrize("lens", LENSES.values(), ids=LENSES)
def test_points_are_rendered_where_they_are_projected(lens):
    T_body_camera = Pose.from_rotvec(np.array([0.02, 0.05, -0.03]), np.array([0.3, -0.2, 0.4]))
    T_base_body = Pose(np.array([0.1, -0.2, 0.3]), np.array([0.5, 0.5, 0.5, 0.5]))
    T_base_camera = T_base_body @ T_body_camera
    rays = lens.rays(np.array([[40.0, 30.0], [280.0, 40.0], [160.0, 120.0], [50.0, 200.0], [270.0, 210.0]]))
    seen = 0.6 * rays
    model = scene(seen @ T_base_camera.matrix.T + T_base_camera.position)
    set_camera_pose(model, "eye", T_body_camera)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_camlight(model, data)
    found = camera_pose(data, model, "eye")
    np.testing.assert_allclose(found.position, T_base_camera.position, atol=1e-12)
    np.testing.assert_allclose(found.matrix, T_base_camera.matrix, atol=1e-12)

    camera = LensCamera(model, "eye", lens)
    brightness = camera.render(data).astype(float)[:, :, 1]
    camera.close()
    for x, y in lens.project(seen):
        column, row = round(x), round(y)
        window = brightness[row - 6 : row + 7, column - 6 : column + 7]
        total = window.sum()
        assert total > 100, "there is a ball"
        rows, columns = np.mgrid[row - 6 : row + 7, column - 6 : column + 7]
        assert (columns * window).sum() / total == pytest.approx(x, abs=0.15)
        assert (rows * window).sum() / total == pytest.approx(y, abs=0.15)


def test_a_lens_that_sees_more_than_a_plane_is_refused():
    wide = CameraIntrinsics("c", 640, 480, "equidistant", 150.0, 150.0, 320.0, 240.0, (0.0,) * 4)
    with pytest.raises(RenderError, match="one rendered picture cannot show that"):
        LensCamera(scene([]), "eye", wide)
