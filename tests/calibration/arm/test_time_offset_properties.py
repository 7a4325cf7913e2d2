"""Delays and trajectories: how they move with clocks and frames, and how sure they are."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import START
from motions import motion as recorded_motion
from synthetic import apart

from calibration.arm.time_offset import calibrate_time_offset
from calibration.arm.trajectory import Trajectory
from calibration.result import MOUNTINGS
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

MS = 1_000_000  # [ns]
mountings = pytest.mark.parametrize("mounting", MOUNTINGS)


def motion(seed, mounting, *, delay, size=1.0):
    """A short motion at a low rate: quick to calibrate."""
    return recorded_motion(seed, mounting, delay=delay, size=size, rate=18.0, span=2.0)


def later(frames, ns):
    return [dataclasses.replace(frame, stamp=frame.stamp + ns) for frame in frames]


@mountings
def test_frames_stamped_later_are_later_by_as_much(mounting):
    shift = 85 if mounting == "eye_in_hand" else -37
    hand_eye, frames, trajectory = motion(4, mounting, delay=0.02)
    before = calibrate_time_offset(hand_eye, frames, trajectory).result
    after = calibrate_time_offset(hand_eye, later(frames, shift * MS), trajectory).result
    assert after.delay - before.delay == pytest.approx(1e-3 * shift, abs=5e-5)
    assert after.sigma == pytest.approx(before.sigma, rel=0.2)


def test_a_clock_that_is_set_for_both_changes_nothing():
    hand_eye, frames, trajectory = motion(5, "eye_in_hand", delay=0.02)
    before = calibrate_time_offset(hand_eye, frames, trajectory).result
    hour = 3600 * 1000 * MS
    after = calibrate_time_offset(
        hand_eye, later(frames, hour), Trajectory(trajectory.stamps + hour, trajectory.poses)
    ).result
    assert after.delay == pytest.approx(before.delay, abs=1e-5)


def test_the_order_of_frames_does_not_change_the_delay():
    hand_eye, frames, trajectory = motion(6, "eye_to_hand", delay=-0.015)
    before = calibrate_time_offset(hand_eye, frames, trajectory).result.delay
    assert calibrate_time_offset(hand_eye, frames[::-1], trajectory).result.delay == pytest.approx(before, abs=1e-5)


def test_another_base_frame_changes_nothing_for_a_camera_on_the_tool():
    hand_eye, frames, trajectory = motion(7, "eye_in_hand", delay=0.03)
    T = Pose.from_rotvec(np.array([1.0, -2.0, 0.5]), np.array([0.4, 1.0, -0.3]))
    moved = Trajectory(trajectory.stamps, [T @ pose for pose in trajectory.poses])
    before = calibrate_time_offset(hand_eye, frames, trajectory).result
    after = calibrate_time_offset(hand_eye, frames, moved).result
    assert after.delay == pytest.approx(before.delay, abs=1e-5)


@mountings
def test_delays_are_found_within_the_stated_uncertainty(mounting):
    scores = []
    for seed in range(20, 25):
        hand_eye, frames, trajectory = motion(seed, mounting, delay=0.02)
        if len(frames) < 30:
            continue  # the board was out of the picture for long
        result = calibrate_time_offset(hand_eye, frames, trajectory).result
        scores.append((result.delay - 0.02) / result.sigma)
    assert len(scores) >= 2
    assert np.sqrt(np.mean(np.square(scores))) < 2.0
    assert np.abs(scores).max() < 4.5


def test_a_larger_motion_makes_the_delay_surer():
    sigmas = []
    for size in (0.2, 0.5, 1.0):
        hand_eye, frames, trajectory = motion(8, "eye_in_hand", delay=0.02, size=size)
        sigmas.append(calibrate_time_offset(hand_eye, frames, trajectory).result.sigma)
    assert sigmas == sorted(sigmas, reverse=True)


def test_the_search_has_its_minimum_at_the_delay():
    hand_eye, frames, trajectory = motion(9, "eye_in_hand", delay=0.06)
    fit = calibrate_time_offset(hand_eye, frames, trajectory)
    best = fit.search[fit.search[:, 1].argmin(), 0]
    assert abs(best - fit.result.delay) <= 0.015
    assert (np.diff(fit.search[:, 0]) > 0).all()


# ------------------------------------------------------------------ trajectories

seeds = st.integers(0, 10**6)


def random_trajectory(seed, count=12):
    rng = np.random.default_rng(seed)
    stamps = START + np.cumsum(rng.integers(5 * MS, 40 * MS, count))
    pose, poses = Pose.from_rotvec(rng.normal(size=3), rng.normal(size=3)), []
    for _ in range(count):
        poses.append(pose)
        pose = pose @ Pose.from_rotvec(rng.uniform(-0.02, 0.02, 3), rng.uniform(-0.05, 0.05, 3))
    return Trajectory(stamps, poses)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_a_trajectory_goes_through_its_poses(seed):
    trajectory = random_trajectory(seed)
    for stamp, pose in list(zip(trajectory.stamps, trajectory.poses, strict=True))[:-1]:
        assert max(apart(trajectory.at(int(stamp))[0], pose)) < 1e-7


@given(seed=seeds, share=st.floats(0.0, 0.999))
@settings(max_examples=20, deadline=None)
def test_between_two_poses_it_moves_evenly(seed, share):
    trajectory = random_trajectory(seed)
    i = 3
    a, b = trajectory.poses[i], trajectory.poses[i + 1]
    stamp = trajectory.stamps[i] + share * (trajectory.stamps[i + 1] - trajectory.stamps[i])
    here = trajectory.at(float(stamp))[0]
    whole, part = (a.inverse() @ b).vector(), (a.inverse() @ here).vector()
    np.testing.assert_allclose(part, share * whole, atol=1e-5)  # a stamp near 2^61 ns, as a float, is good to 0.2 us


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_another_base_frame_moves_poses_and_keeps_twists(seed):
    """The twist is in the tcp's own frame; another tool frame carries it along by the adjoint."""
    trajectory = random_trajectory(seed)
    T = Pose.from_rotvec(np.array([0.3, 1.0, -0.2]), np.array([0.5, -0.4, 1.0]))
    moved = Trajectory(trajectory.stamps, [T @ pose for pose in trajectory.poses])
    stamp = float(trajectory.stamps[5] + 3 * MS)
    (pose, twist), (pose_moved, twist_moved) = trajectory.at(stamp), moved.at(stamp)
    assert max(apart(T @ pose, pose_moved)) < 1e-7
    np.testing.assert_allclose(twist_moved, twist, atol=1e-6)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_a_slower_clock_makes_a_slower_arm(seed):
    trajectory = random_trajectory(seed)
    slow = Trajectory(START + 2 * (trajectory.stamps - START), trajectory.poses)
    stamp = int(trajectory.stamps[5] + 2 * MS)
    pose, _ = trajectory.at(stamp)
    there, _ = slow.at(START + 2 * (stamp - START))
    assert max(apart(pose, there)) < 1e-6


def test_nothing_is_invented_outside_and_in_gaps():
    stamps = START + np.array([0, 10, 20, 150, 160]) * MS
    trajectory = Trajectory(stamps, [Pose.identity()] * 5)
    assert trajectory.at(START - 1000) is None
    assert trajectory.at(float(START + 15 * MS)) is not None
    assert trajectory.at(float(START + 80 * MS)) is None
    assert trajectory.at(float(START + 155 * MS)) is not None
    assert trajectory.at(float(START + 161 * MS)) is None


@pytest.mark.parametrize(("stamps", "count"), [([1], 1), ([], 0), ([1, 2, 3], 2), ([1, 1], 2), ([2, 1], 2)])
def test_stamps_that_are_no_trajectory_are_refused(stamps, count):
    with pytest.raises(CalibrationError, match=r"no trajectory|do not rise"):
        Trajectory(np.array(stamps, np.int64), [Pose.identity()] * count)
