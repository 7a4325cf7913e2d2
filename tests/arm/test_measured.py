"""What is made of what a driver measures: twists of motions that are known, wrenches by hand, widths by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.arm.gripper_scale import GripperScale
from robot_rl.arm.twist_estimator import TwistFromPoses
from robot_rl.arm.wrench_filter import ContactWrench
from robot_rl.clock import NS_PER_S
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply

PERIOD = NS_PER_S // 100
three = st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3).map(np.array)


@given(three, three, three)
def test_a_steady_motion_has_its_own_twist(start, velocity, turn_rate):
    twists, begun = TwistFromPoses(), quat_from_rotvec(start)
    for i in range(10):
        t = i * PERIOD / NS_PER_S
        pose = Pose(start + velocity * t, quat_multiply(quat_from_rotvec(turn_rate * t), begun))
        twist = twists.add(5 * NS_PER_S + i * PERIOD, pose)
        if i == 0:
            assert not twist.any()
        else:
            np.testing.assert_allclose(twist, np.concatenate((velocity, turn_rate)), atol=1e-6)


def test_the_window_is_no_longer_than_it_has_to_be():
    """After a jump of the velocity, the old one is forgotten within the window of 30 ms."""
    twists, x = TwistFromPoses(window=0.03), 0.0
    for i in range(30):
        x += (0.1 if i > 20 else 0.0) * PERIOD / NS_PER_S
        twist = twists.add(i * PERIOD, Pose(np.array([x, 0, 0]), np.array([1.0, 0, 0, 0])))
        assert twist[0] == pytest.approx(np.clip((i - 20) / 3, 0, 1) * 0.1, abs=1e-9)


@pytest.mark.parametrize("next_stamp", [NS_PER_S, 5 * PERIOD, -PERIOD], ids=["gap", "same", "back"])
def test_after_a_gap_or_a_jump_of_time_it_starts_anew(next_stamp):
    twists = TwistFromPoses()
    for i in range(6):
        twists.add(i * PERIOD, Pose(np.array([i * 0.001, 0, 0]), np.array([1.0, 0, 0, 0])))
    assert not twists.add(next_stamp, Pose(np.array([1.0, 0, 0]), np.array([1.0, 0, 0, 0]))).any()


def test_a_step_of_the_force_passes_the_low_pass_as_the_formula_says():
    contact = ContactWrench(cutoff=10.0)
    contact.add(0, np.zeros(6))
    step = np.array([0, 0, 8.0, 0, 0, 1.0])
    for i in range(1, 4):
        value = contact.add(i * PERIOD, step)
        np.testing.assert_allclose(value, step * (1 - math.exp(-2 * math.pi * 10 * 0.01 * i)))
    assert contact.take_peak() == pytest.approx(value[2])
    assert contact.take_peak() == 0.0


def test_the_peak_is_of_all_samples_since_it_was_asked_for():
    contact = ContactWrench(cutoff=0.0)
    for i, force in enumerate((1.0, 7.0, 2.0)):
        contact.add(i, np.array([force, 0, 0, 0, 0, 0]))
    assert contact.take_peak() == 7.0


def test_taring_takes_off_the_mean_of_the_last_half_second():
    contact = ContactWrench(cutoff=0.0)
    assert not contact.tare()
    contact.add(0, np.full(6, 100.0))  # too long ago
    for i in range(10):
        contact.add(NS_PER_S + i * PERIOD, np.array([0, 0, 5.0 + (-1) ** i, 0, 0, 0]))
    assert contact.tare()
    assert contact.add(2 * NS_PER_S, np.array([0, 0, 8.0, 0, 0, 0]))[2] == pytest.approx(3.0)


def test_widths_by_hand():
    robotiq = GripperScale(closed=0.8, opened=0.0, width=0.085)
    assert robotiq.value_of(0.0) == pytest.approx(0.8)
    assert robotiq.value_of(0.085) == 0.0
    assert robotiq.value_of(0.0425) == pytest.approx(0.4)
    assert (robotiq.value_of(1.0), robotiq.value_of(-1.0)) == (0.0, 0.8)
    assert robotiq.width_of(0.2) == pytest.approx(0.75 * 0.085)


@pytest.mark.parametrize("wrong", [(1.0, 1.0, 0.08), (0.0, 1.0, 0.0)])
def test_a_scale_without_a_slope_is_refused(wrong):
    with pytest.raises(ConfigError, match="gripper_closed"):
        GripperScale(*wrong)
