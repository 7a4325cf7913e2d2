"""Bias, mass and centre of mass, planted in noisy readings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import EYE, TRUTH, readings

from calibration.arm.wrench import calibrate_wrench
from calibration.result import ToolWrench
from robot_rl.errors import CalibrationError


def test_mass_and_centre_are_found_within_the_stated_uncertainty():
    inside = []
    for seed in range(20):
        fit = calibrate_wrench(*readings(seed), "fr3")
        assert fit.quality.good, fit.quality.verdict
        assert fit.result.mass == pytest.approx(TRUTH.mass, rel=0.01)
        assert np.abs(np.subtract(fit.result.center_of_mass, TRUTH.center_of_mass)).max() < 2e-3
        found = np.concatenate((fit.result.bias, [fit.result.mass], fit.result.center_of_mass))
        truth = np.concatenate((TRUTH.bias, [TRUTH.mass], TRUTH.center_of_mass))
        inside.append(np.abs(found - truth) < 2.0 * np.sqrt(np.diag(fit.result.covariance)))
        assert fit.quality.figures["held_out_force_rms_n"] == pytest.approx(0.05, rel=0.4)
    assert 0.9 <= np.mean(inside) <= 0.99


def test_compensation_leaves_only_noise_on_new_poses():
    fit = calibrate_wrench(*readings(0), "fr3")
    rotations, wrenches = readings(1)
    left = wrenches - np.stack([fit.result.unloaded(R) for R in rotations])
    assert np.sqrt(np.mean(left[:, :3] ** 2)) < 0.08
    assert np.sqrt(np.mean(left[:, 3:] ** 2)) < 0.005


@given(mass=st.floats(0.3, 5.0), x=st.floats(-0.1, 0.1), z=st.floats(-0.1, 0.2), b=st.floats(-20, 20))
@settings(max_examples=25, deadline=None)
def test_perfect_readings_give_the_truth(mass, x, z, b):
    truth = ToolWrench("fr3", (b, -b, 1.0, 0.1 * b, 0.0, 0.3), mass, (x, -x, z), EYE)
    fit = calibrate_wrench(*readings(0, truth, force_noise=0.0, torque_noise=0.0), "fr3")
    np.testing.assert_allclose(fit.result.mass, mass, rtol=1e-9)
    np.testing.assert_allclose(fit.result.center_of_mass, truth.center_of_mass, atol=1e-9)
    np.testing.assert_allclose(fit.result.bias, truth.bias, atol=1e-8)


def test_a_touched_tool_is_left_out():
    rotations, wrenches = readings(2)
    for i in (4, 9, 13, 17):
        wrenches[i, :3] += (3.0, -2.0, 4.0)
    fit = calibrate_wrench(rotations, wrenches, "fr3")
    assert set(fit.quality.rejected) == {"pose 4", "pose 9", "pose 13", "pose 17"}
    assert fit.result.mass == pytest.approx(TRUTH.mass, rel=0.01)


def test_what_cannot_be_known_is_refused():
    rotations, wrenches = readings(3)
    with pytest.raises(CalibrationError, match="5 poses, needed are 8"):
        calibrate_wrench(rotations[:5], wrenches[:5], "fr3")
    with pytest.raises(CalibrationError, match="turned too little"):
        calibrate_wrench(*readings(3, tilt=0.05), "fr3")
    with pytest.raises(CalibrationError, match="opposite sign"):
        calibrate_wrench(rotations, -wrenches, "fr3")
    nothing = ToolWrench("fr3", TRUTH.bias, 0.0, (0.0, 0.0, 0.0), EYE)
    with pytest.raises(CalibrationError, match="compensated already"):
        calibrate_wrench(*readings(4, nothing), "fr3")
    rng = np.random.default_rng(0)
    with pytest.raises(CalibrationError, match=r"contradict|opposite sign|compensated already"):
        calibrate_wrench(rotations, wrenches[rng.permutation(len(wrenches))], "fr3")


def test_too_much_noise_is_not_called_good():
    fit = calibrate_wrench(*readings(5, force_noise=0.5, torque_noise=0.05), "fr3")
    assert not fit.quality.good
    assert "add poses tilted" in fit.quality.verdict
