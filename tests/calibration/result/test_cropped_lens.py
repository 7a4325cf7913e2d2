"""The lens of a cut and resized picture: numbers by hand, and points that land where the picture shows them."""

import numpy as np
import pytest
from synthetic import FISHEYE, PINHOLE

from calibration.result import CameraIntrinsics


def test_the_numbers_by_hand():
    lens = CameraIntrinsics("c", 640, 480, "plumb_bob", 600.0, 610.0, 320.0, 240.0, (0.1, -0.2, 1e-3, 2e-3, 0.3))
    square = lens.cropped((80, 0, 480, 480), (128, 128))
    # The scale is 128 / 480 = 4 / 15; (320 + 0.5 - 80) * 4 / 15 - 0.5 and (240 + 0.5) * 4 / 15 - 0.5:
    assert (square.fx, square.fy) == (pytest.approx(160.0), pytest.approx(610 * 4 / 15))
    assert (square.cx, square.cy) == (pytest.approx(63.6 + 1 / 30), pytest.approx(63.6 + 1 / 30))
    assert (square.width, square.height, square.camera) == (128, 128, "c")
    assert square.distortion == lens.distortion
    cut = lens.cropped((100, 50, 320, 200), (320, 200))
    assert (cut.fx, cut.fy, cut.cx, cut.cy) == (600.0, 610.0, 220.0, 190.0)
    flat = lens.cropped((0, 0, 640, 480), (320, 120))
    assert (flat.fx, flat.fy, flat.cx, flat.cy) == (300.0, 152.5, 159.75, 59.625)


@pytest.mark.parametrize("lens", [PINHOLE, FISHEYE], ids=["pinhole", "fisheye"])
def test_points_are_projected_where_the_new_picture_shows_them(lens):
    points = np.array([[0.1, -0.05, 1.0], [-0.2, 0.1, 0.8], [0.0, 0.0, 0.5]])
    left, top, width, height = 40, 30, 200, 150
    new = lens.cropped((left, top, width, height), (50, 75))
    expected = (lens.project(points) + 0.5 - [left, top]) * [50 / width, 75 / height] - 0.5
    np.testing.assert_allclose(new.project(points), expected, atol=1e-9)


def test_the_uncertainty_is_scaled_too():
    covariance = tuple(map(tuple, np.diag([1.0, 4.0, 9.0, 16.0, 0.01, 0.02, 0.03, 0.04]).tolist()))
    lens = CameraIntrinsics("c", 100, 100, "equidistant", 50.0, 50.0, 50.0, 50.0, (0.0,) * 4, covariance, 0.3)
    half = lens.cropped((0, 0, 100, 100), (50, 50))
    np.testing.assert_allclose(half.sigma, np.sqrt([0.25, 1.0, 2.25, 4.0, 0.01, 0.02, 0.03, 0.04]))
    assert half.rms == pytest.approx(0.15)
