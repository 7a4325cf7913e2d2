"""What is shown of a frame, and that a calibrated lens is changed in the same way."""

import numpy as np
import pytest

from robot_rl.camera.crop import Crop, make_crop
from robot_rl.errors import ConfigError


def test_without_a_crop_the_largest_square_in_the_middle_is_shown():
    assert make_crop((640, 480), 128) == Crop((80, 0, 480, 480), (128, 128))
    assert make_crop((480, 640), 128) == Crop((0, 80, 480, 480), (128, 128))


def test_without_a_size_the_frame_is_shown_as_it_is():
    image = np.random.default_rng(0).integers(0, 255, (48, 64, 3), np.uint8)
    view = make_crop((64, 48), 0)
    assert view == Crop((0, 0, 64, 48), (64, 48))
    assert np.array_equal(view.apply(image), image)
    cut = make_crop((64, 48), 0, (10, 4, 20, 8)).apply(image)
    assert np.array_equal(cut, image[4:12, 10:30])


def test_the_rectangle_that_is_named_is_what_is_shown_at_the_size_that_is_asked_for():
    image = np.zeros((48, 64, 3), np.uint8)
    image[8:24, 16:32] = (10, 200, 30)
    shown = make_crop((64, 48), 8, (16, 8, 16, 16)).apply(image)
    assert shown.shape == (8, 8, 3)
    assert (shown[1:-1, 1:-1] == (10, 200, 30)).all()


def test_a_point_lands_where_the_formula_says():
    """A bright spot, far larger than a pixel of the result: its centre of mass is moved as `Crop.apply` documents."""
    rows, columns = np.mgrid[0:480, 0:640]
    spot = np.exp(-((columns - 371.3) ** 2 + (rows - 202.8) ** 2) / (2 * 12.0**2))
    image = np.repeat((250 * spot).astype(np.uint8)[:, :, None], 3, axis=2)
    shown = make_crop((640, 480), 120, (200, 60, 300, 240)).apply(image)[:, :, 0].astype(float)
    rows, columns = np.mgrid[0:120, 0:120]
    column, row = (shown * columns).sum() / shown.sum(), (shown * rows).sum() / shown.sum()
    assert column == pytest.approx((371.3 + 0.5 - 200) * 120 / 300 - 0.5, abs=0.02)
    assert row == pytest.approx((202.8 + 0.5 - 60) * 120 / 240 - 0.5, abs=0.02)


@pytest.mark.parametrize("crop", [(-1, 0, 10, 10), (0, 0, 0, 10), (60, 0, 10, 10), (0, 40, 10, 10)])
def test_a_crop_outside_the_frame_is_refused(crop):
    with pytest.raises(ConfigError, match="not inside frames of 64 x 48 px"):
        make_crop((64, 48), 8, crop)
