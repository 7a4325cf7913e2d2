"""The camera models: against OpenCV, finite differences and their own inverse."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import FISHEYE, PINHOLE

from calibration.camera.intrinsics import parameter_derivative
from calibration.result import CameraIntrinsics

BROWN = CameraIntrinsics("c", 640, 480, "plumb_bob", 600.0, 610.0, 320.0, 240.0, (0.1, -0.05, 0.001, 0.002, 0.01))
CAMERAS = {"plumb_bob": BROWN, "rational": PINHOLE, "fisheye": FISHEYE}


def points(seed, n=40):
    rng = np.random.default_rng(seed)
    return np.column_stack((rng.uniform(-0.4, 0.4, (n, 2)), rng.uniform(0.8, 1.2, n)))


@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
def test_projection_is_opencvs(camera):
    P, zero, k = points(0), np.zeros(3), np.array(camera.distortion)
    if camera.model == "equidistant":
        expected = cv2.fisheye.projectPoints(P[:, None], zero, zero, camera.matrix, k)[0]
    else:
        expected = cv2.projectPoints(P, zero, zero, camera.matrix, k)[0]
    np.testing.assert_allclose(camera.project(P), expected.reshape(-1, 2), atol=1e-9)


@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_derivative_is_that_of_finite_differences(camera, seed):
    P = points(seed, 5)
    _, J = camera.project_with_jacobian(P)
    numeric = [(camera.project(P + d) - camera.project(P - d)) / 2e-6 for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(J, np.stack(numeric, axis=2), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
def test_derivative_by_the_cameras_numbers_is_that_of_finite_differences(camera):
    P = points(1)
    J = parameter_derivative(camera, P)
    for i, change in enumerate(1e-5 * np.eye(len(camera.vector))):
        plus, minus = (camera.with_vector(camera.vector + sign * change).project(P) for sign in (1, -1))
        np.testing.assert_allclose(J[:, :, i], (plus - minus) / 2e-5, atol=1e-4)


@pytest.mark.parametrize("camera", CAMERAS.values(), ids=CAMERAS)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_rays_undo_projection(camera, seed):
    P = points(seed)
    rays = camera.rays(camera.project(P))
    np.testing.assert_allclose(rays, P / np.linalg.norm(P, axis=1, keepdims=True), atol=1e-9)


def test_what_lies_behind_a_pinhole_has_no_pixel():
    assert np.isnan(PINHOLE.project(np.array([[0.0, 0.0, -1.0]]))).all()


def test_a_pixel_that_no_ray_leads_to_has_no_ray():
    folding = CameraIntrinsics("c", 640, 480, "plumb_bob", 300.0, 300.0, 320.0, 240.0, (-0.4, 0.0, 0.0, 0.0, 0.0))
    rays = folding.rays(np.array([[0.0, 0.0], [320.0, 240.0]]))
    assert np.isnan(rays[0]).all()
    np.testing.assert_allclose(rays[1], [0, 0, 1], atol=1e-12)
