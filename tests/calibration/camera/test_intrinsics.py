"""Intrinsics from corners with known noise: right, as sure as stated, and refused where they cannot be."""

import dataclasses

import numpy as np
import pytest
from synthetic import FISHEYE, PINHOLE, random_views

from calibration.camera.intrinsics import calibrate_intrinsics
from calibration.camera.view import BoardView
from robot_rl.errors import CalibrationError


@pytest.mark.parametrize("truth", [PINHOLE, FISHEYE], ids=lambda camera: camera.model)
def test_the_camera_is_found_within_the_stated_uncertainty(truth):
    noise = 0.15
    inside, total = 0, 0
    for seed in range(3):
        fit = calibrate_intrinsics(random_views(seed, 20, truth, noise=noise), "wrist", truth.model)
        error = np.abs(fit.result.vector - truth.vector)
        assert (error[:2] < 0.002 * truth.fx).all()
        assert (error[2:4] < 2.0).all()
        assert fit.result.rms == pytest.approx(noise, rel=0.1)
        inside += int((error[:4] < 2.0 * fit.result.sigma[:4]).sum())
        total += 4
    assert inside >= 0.75 * total  # of 12, correlated; the benchmark has the statistics


def test_bad_views_and_corners_are_left_out_with_a_reason():
    views = random_views(0, 15)
    rng = np.random.default_rng(0)
    views[3] = dataclasses.replace(views[3], pixels=views[3].pixels + rng.normal(0, 3, views[3].pixels.shape))
    wrong = views[5].pixels.copy()
    wrong[7] += (9.0, -4.0)
    views[5] = dataclasses.replace(views[5], pixels=wrong)
    fit = calibrate_intrinsics(views, "wrist")
    assert list(fit.quality.rejected) == ["view 3"]
    assert "fits worse" in fit.quality.rejected["view 3"]
    fifth = next(view for view in fit.views if view.name == "view 5")
    assert views[5].ids[7] not in fifth.ids
    assert np.abs(fit.result.fx - PINHOLE.fx) < 0.002 * PINHOLE.fx


def test_too_few_views_are_refused():
    with pytest.raises(CalibrationError, match=r"5 usable views, needed are 8.*x.png: is blurred"):
        calibrate_intrinsics(random_views(0, 5), "wrist", rejected={"x.png": "is blurred"})


def test_views_that_are_alike_are_refused():
    fit = calibrate_intrinsics(random_views(0, 12, tilt=0.02), "wrist")
    assert not fit.quality.good
    assert "views are alike" in fit.quality.verdict
    assert "tilted by 20 to 40 deg" in fit.quality.verdict


def test_mixed_resolutions_are_refused():
    views = random_views(0, 10)
    views[4] = BoardView("big", (1280, 960), views[4].ids, 2 * views[4].pixels, views[4].points)
    with pytest.raises(CalibrationError, match="9 of 640 x 480 px, 1 of 1280 x 960 px"):
        calibrate_intrinsics(views, "wrist")
