"""The wrench calibration: how bias, mass and centre move with the frames, and what they may not depend on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import TRUTH, readings

from calibration.arm.wrench import GRAVITY, calibrate_wrench
from robot_rl.geometry import Pose

seeds = st.integers(0, 10**6)


def numbers(fit):
    return np.concatenate((fit.result.bias, [fit.result.mass], fit.result.center_of_mass))


def random_rotation(seed):
    return Pose.from_rotvec(np.zeros(3), np.random.default_rng(seed).uniform(-2, 2, 3)).matrix


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_a_turned_sensor_frame_turns_bias_and_centre(seed):
    """The same readings in a frame turned by S: forces, torques and the centre turn, the mass stays."""
    S = random_rotation(seed)
    rotations, wrenches = readings(seed)
    before = calibrate_wrench(rotations, wrenches, "fr3")
    turned = np.hstack((wrenches[:, :3] @ S, wrenches[:, 3:] @ S))
    after = calibrate_wrench(rotations @ S, turned, "fr3")
    assert after.result.mass == pytest.approx(before.result.mass, rel=1e-9)
    np.testing.assert_allclose(after.result.center_of_mass, S.T @ before.result.center_of_mass, atol=1e-9)
    np.testing.assert_allclose(after.result.bias[:3], S.T @ before.result.bias[:3], atol=1e-9)
    np.testing.assert_allclose(after.result.bias[3:], S.T @ before.result.bias[3:], atol=1e-9)
    full = np.zeros((10, 10))
    full[:3, :3] = full[3:6, 3:6] = full[7:, 7:] = S.T
    full[6, 6] = 1.0
    np.testing.assert_allclose(after.result.covariance, full @ before.result.covariance @ full.T, atol=1e-10)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_a_turned_base_frame_changes_nothing_if_gravity_turns_along(seed):
    Q = random_rotation(seed)
    rotations, wrenches = readings(seed)
    before = calibrate_wrench(rotations, wrenches, "fr3")
    after = calibrate_wrench(Q @ rotations, wrenches, "fr3", gravity=Q @ GRAVITY)
    np.testing.assert_allclose(numbers(after), numbers(before), atol=1e-9)
    np.testing.assert_allclose(after.result.gravity, Q @ GRAVITY, atol=1e-12)
    for R, Qr in zip(rotations, Q @ rotations, strict=True):
        np.testing.assert_allclose(after.result.unloaded(Qr), before.result.unloaded(R), atol=1e-8)


@given(d=st.tuples(*[st.floats(-0.2, 0.2)] * 3).map(np.array))
@settings(max_examples=10, deadline=None)
def test_a_shifted_sensor_origin_shifts_the_centre_and_the_torques(d):
    rotations, wrenches = readings(0, force_noise=0.0, torque_noise=0.0)
    shifted = np.hstack((wrenches[:, :3], wrenches[:, 3:] + np.cross(d, wrenches[:, :3])))
    found = calibrate_wrench(rotations, shifted, "fr3").result
    np.testing.assert_allclose(found.center_of_mass, TRUTH.center_of_mass + d, atol=1e-9)
    np.testing.assert_allclose(found.bias[3:], TRUTH.bias[3:] + np.cross(d, TRUTH.bias[:3]), atol=1e-9)
    assert found.mass == pytest.approx(TRUTH.mass)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_the_order_of_poses_does_not_matter(seed):
    rotations, wrenches = readings(seed)
    order = np.random.default_rng(seed).permutation(len(wrenches))
    before = calibrate_wrench(rotations, wrenches, "fr3")
    after = calibrate_wrench(rotations[order], wrenches[order], "fr3")
    np.testing.assert_allclose(numbers(after), numbers(before), atol=1e-9)
    np.testing.assert_allclose(after.held_out, before.held_out[order], atol=1e-9)


@given(factor=st.floats(0.5, 4.0))
@settings(max_examples=10, deadline=None)
def test_units_scale(factor):
    """All readings larger by a factor: bias and mass are, the centre stays. Weaker gravity: a larger mass."""
    rotations, wrenches = readings(1)
    before = calibrate_wrench(rotations, wrenches, "fr3").result
    after = calibrate_wrench(rotations, factor * wrenches, "fr3").result
    np.testing.assert_allclose(after.bias, factor * np.array(before.bias), rtol=1e-6)
    assert after.mass == pytest.approx(factor * before.mass)
    np.testing.assert_allclose(after.center_of_mass, before.center_of_mass, atol=1e-9)
    moon = calibrate_wrench(rotations, wrenches, "fr3", gravity=GRAVITY / factor).result
    assert moon.mass == pytest.approx(factor * before.mass)


def test_a_constant_offset_is_bias_and_nothing_else():
    rotations, wrenches = readings(2)
    offset = np.array([10.0, -20.0, 5.0, 0.3, 0.1, -0.7])
    before, after = (numbers(calibrate_wrench(rotations, w, "fr3")) for w in (wrenches, wrenches + offset))
    np.testing.assert_allclose(after - before, np.append(offset, np.zeros(4)), atol=1e-9)


def test_errors_are_as_large_as_the_covariance_states():
    """Over 40 sets of readings the squared distance of ten numbers has a mean of 10, its standard error being 0.7."""
    truth = np.concatenate((TRUTH.bias, [TRUTH.mass], TRUTH.center_of_mass))
    distances = []
    for seed in range(40):
        fit = calibrate_wrench(*readings(seed, count=30), "fr3")
        error = numbers(fit) - truth
        distances.append(error @ np.linalg.solve(np.array(fit.result.covariance), error))
    assert 8.0 < np.mean(distances) < 13.0


def test_more_poses_make_the_result_surer_and_noise_less_sure():
    sigmas = {}
    for count, noise in ((10, 0.05), (20, 0.05), (40, 0.05), (40, 0.1)):
        fits = [calibrate_wrench(*readings(s, count=count, force_noise=noise), "fr3").result for s in range(8)]
        sigmas[count, noise] = np.mean([np.sqrt(fit.covariance[6][6]) for fit in fits])
    assert sigmas[10, 0.05] > sigmas[20, 0.05] > sigmas[40, 0.05]
    assert sigmas[40, 0.1] == pytest.approx(2.0 * sigmas[40, 0.05], rel=0.2)


def test_more_noise_never_makes_a_bad_result_good():
    """The verdict is monotone in the evidence: the same noise, larger."""
    good = [
        calibrate_wrench(*readings(3, force_noise=n, torque_noise=0.06 * n), "fr3").quality.good
        for n in (0.01, 0.03, 0.1, 0.3, 1.0)
    ]
    assert good == sorted(good, reverse=True)
    assert good[0]
    assert not good[-1]


def test_held_out_errors_are_those_of_a_fit_without_the_pose():
    """For noise without outliers, where all weights are near one, to a few percent."""
    rotations, wrenches = readings(4, force_noise=0.05)
    fit = calibrate_wrench(rotations, wrenches, "fr3")
    for i in range(0, 20, 5):
        others = np.arange(20) != i
        without = calibrate_wrench(rotations[others], wrenches[others], "fr3").result
        left = wrenches[i, :3] - without.unloaded(rotations[i])[:3]
        np.testing.assert_allclose(fit.held_out[i, :3], left, atol=0.015)
    assert (np.linalg.norm(fit.held_out, axis=1) >= np.linalg.norm(fit.errors, axis=1)).all()


def test_a_rejected_pose_leaves_the_result_as_if_it_had_not_been_given():
    rotations, wrenches = readings(5)
    touched = wrenches.copy()
    touched[7, :3] += (5.0, 5.0, -5.0)
    names = [f"p{i}" for i in range(20)]
    fit = calibrate_wrench(rotations, touched, "fr3", names=names)
    others = np.arange(20) != 7
    alone = calibrate_wrench(rotations[others], wrenches[others], "fr3")
    assert list(fit.quality.rejected) == ["p7"]
    np.testing.assert_array_equal(fit.used, others)
    np.testing.assert_allclose(numbers(fit), numbers(alone), atol=1e-9)
