"""The delay of a camera, planted in motions that are otherwise known."""

import dataclasses

import numpy as np
import pytest
from motions import START, motion
from synthetic import PINHOLE

from calibration.arm.time_offset import calibrate_time_offset
from calibration.arm.trajectory import Trajectory
from calibration.result import MOUNTINGS
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose


@pytest.mark.parametrize("mounting", MOUNTINGS)
@pytest.mark.parametrize("delay", [0.0337, -0.112])
def test_the_delay_is_found_to_a_fraction_of_a_frame(mounting, delay):
    hand_eye, frames, trajectory = motion(0, mounting, delay=delay)
    fit = calibrate_time_offset(hand_eye, frames, trajectory)
    assert fit.quality.good, fit.quality.verdict
    assert abs(fit.result.delay - delay) < 0.002
    assert abs(fit.result.delay - delay) < 4.0 * fit.result.sigma
    assert fit.result.sigma < 0.001
    assert fit.errors.shape == (len(fit.stamps), 6)
    if abs(delay) > 0.03:
        assert fit.quality.figures["error_after_mm"] < 0.3 * fit.quality.figures["error_before_mm"]


def test_wrong_frames_are_left_out():
    hand_eye, frames, trajectory = motion(1, "eye_in_hand", delay=0.02)
    frames[10] = dataclasses.replace(frames[10], stamp=frames[10].stamp + 200_000_000)
    fit = calibrate_time_offset(hand_eye, frames, trajectory)
    assert list(fit.quality.rejected) == [frames[10].view.name]
    assert abs(fit.result.delay - 0.02) < 0.002


def test_an_arm_that_hardly_moves_gives_no_result():
    hand_eye, frames, trajectory = motion(2, "eye_in_hand", delay=0.02, size=0.003)
    with pytest.raises(CalibrationError, match=r"hardly moved.*swing it back and forth"):
        calibrate_time_offset(hand_eye, frames, trajectory)


def test_bad_input_is_refused():
    hand_eye, frames, trajectory = motion(3, "eye_in_hand", delay=0.02)
    with pytest.raises(CalibrationError, match="10 usable frames, needed are 20"):
        calibrate_time_offset(hand_eye, frames[:10], trajectory)
    other_camera = dataclasses.replace(hand_eye, intrinsics=dataclasses.replace(PINHOLE, width=1280, height=720))
    with pytest.raises(CalibrationError, match="1280 x 720"):
        calibrate_time_offset(other_camera, frames, trajectory)
    other_clock = [dataclasses.replace(frame, stamp=frame.stamp - START) for frame in frames]
    with pytest.raises(CalibrationError, match="on the clock of the pictures"):
        calibrate_time_offset(hand_eye, other_clock, trajectory)
    with pytest.raises(CalibrationError, match="do not rise"):
        Trajectory(trajectory.stamps[::-1], trajectory.poses)


def test_a_trajectory_is_interpolated_with_its_velocity():
    twist = np.array([0.1, -0.2, 0.05, 0.3, 0.1, -0.2])
    stamps = np.arange(0, 100_000_000, 10_000_000)
    start = Pose.from_rotvec(np.array([0.4, 0.1, 0.3]), np.array([3.0, 0.1, 0.0]))
    poses = [start]
    for _ in stamps[1:]:
        poses.append(poses[-1] @ Pose.from_rotvec(0.01 * twist[:3], 0.01 * twist[3:]))
    trajectory = Trajectory(stamps, poses)
    here, velocity = trajectory.at(25_000_000)
    later, _ = trajectory.at(25_100_000)
    np.testing.assert_allclose((here.inverse() @ later).vector() / 1e-4, velocity, rtol=1e-2, atol=1e-3)
    assert trajectory.at(-1) is None
    assert trajectory.at(95_000_000) is None
