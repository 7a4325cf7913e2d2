"""The stand-in for a real arm: the contracts, its table, its reflex, and the faults that are asked for."""

import time

import numpy as np
import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest, Host, Recorder
from hypothesis import given
from hypothesis import strategies as st
from in_process_arm import WIDE_CAP, WIDE_LIMITS

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.driver import find_driver
from robot_rl.arm.standin.compliant_tool import Compliance, CompliantTool
from robot_rl.arm.standin.fault_schedule import PlannedFault, read_schedule
from robot_rl.arm.standin.standin_arm import TOOL_DOWN, StandinArm, StandinConfig
from robot_rl.errors import ArmStoppedError, ConfigError, StaleStateError
from robot_rl.geometry import Pose


class TestTheStandin(ArmDriverContract):
    @pytest.fixture
    def arm(self):
        return ArmUnderTest(lambda host: StandinArm(StandinConfig(), host), gripper_width=0.08)


def test_it_is_found_by_its_name():
    assert find_driver("standin") is StandinArm


def tool_at(height, set_point, *, stiffness=2000.0, table_stiffness=20000.0):
    tool = CompliantTool(
        Pose(np.array((0.4, 0.0, height)), TOOL_DOWN), Compliance(0.05, stiffness, 0.0, table_stiffness)
    )
    tool.set_point = Pose(np.array((0.4, 0.0, set_point)), TOOL_DOWN)
    return tool


@given(depth=st.floats(0.0, 0.05), stiffness=st.floats(100.0, 5000.0))
def test_on_the_table_the_force_is_that_of_two_springs_in_series(depth, stiffness):
    tool = tool_at(0.0, -depth, stiffness=stiffness)
    for _ in range(40):
        tool.advance(0.05)
    expected = depth * stiffness * 20000.0 / (stiffness + 20000.0)
    np.testing.assert_allclose(tool.wrench()[:3], (0.0, 0.0, -expected), atol=1e-6 + 1e-3 * expected)


def test_after_one_time_constant_63_percent_of_the_way_is_done():
    tool = tool_at(0.2, 0.1)
    for _ in range(50):
        tool.advance(0.001)
    assert (0.2 - tool.pose.position[2]) / 0.1 == pytest.approx(1 - np.exp(-1), rel=1e-6)


def test_the_way_does_not_depend_on_the_rate():
    coarse, fine = tool_at(0.2, 0.1), tool_at(0.2, 0.1)
    coarse.advance(0.04)
    for _ in range(40):
        fine.advance(0.001)
    np.testing.assert_allclose(coarse.pose.position, fine.pose.position, rtol=1e-9)


def test_faults_are_read_in_the_order_of_time():
    assert read_schedule(("lost@60", "reflex@2.5")) == (PlannedFault("reflex", 2.5), PlannedFault("lost", 60.0))


@pytest.mark.parametrize("wrong", ["reflex", "reflex@", "reflex@soon", "fire@3", "lost@-1", "lost@nan"])
def test_what_is_no_fault_is_refused_with_what_is_valid(wrong):
    with pytest.raises(
        ConfigError,
        match=r"must be KIND@SECONDS, e\.g\. reflex@20; kinds: clock, estop, freeze, lost, pushed, reflex, w",
    ):
        StandinArm(StandinConfig(faults=(wrong,)), Host())


def started(**settings):
    arm, seen = StandinArm(StandinConfig(**settings), Host()), Recorder()
    arm.start(seen)
    assert seen.has("pose", 3)
    return arm, seen


def test_pressing_too_hard_trips_the_reflex_and_only_consent_ends_it():
    arm, seen = started(start=(0.4, 0.0, 0.06), time_constant=0.01, reflex_force=30.0)
    try:
        arm.move_to(Pose(np.array((0.4, 0.0, 0.0)), TOOL_DOWN))
        assert seen.wait(arm.faults)
        assert "a reflex stopped the arm" in arm.faults()[0]
        assert "limit 30 N" in arm.faults()[0]
        arm.move_to(Pose(np.array((0.4, 0.0, 0.2)), TOOL_DOWN))
        held = seen.position
        assert seen.has("pose", len(seen.parts["pose"]) + 40)
        assert np.linalg.norm(seen.position - held) < 0.003
        arm.recover()
        assert arm.faults() == []
    finally:
        arm.close()


def test_the_pressed_emergency_stop_outlasts_consent():
    arm, seen = started(faults=("estop@0.1",))
    try:
        assert seen.wait(arm.faults)
        with pytest.raises(ArmStoppedError, match="unlock it first"):
            arm.recover()
    finally:
        arm.close()


def test_behind_the_limits_a_frozen_arm_is_stale_and_a_lost_one_holds_until_consent():
    io = ArmRobotIO(
        lambda host: StandinArm(StandinConfig(faults=("freeze@0.5", "lost@2.5")), host), WIDE_LIMITS, WIDE_CAP
    )
    try:
        states, stale, end = 0, 0, time.monotonic() + 60.0
        while not (stopped := io.stopped) and time.monotonic() < end:
            try:
                states += io.read() is not None
            except StaleStateError:
                stale += 1
            time.sleep(0.01)
        assert (states > 0, stale > 0) == (True, True)
        assert stopped is not None
        assert "connection to the arm is lost" in stopped
        io.recover()
        assert io.stopped is None
    finally:
        io.close()


def test_a_clock_set_back_a_lost_wrench_and_a_push_are_measured_as_they_are():
    arm, seen = started(faults=("wrench@0.1", "clock@0.3", "pushed@0.4"), rate=100.0)
    try:
        assert seen.wait(lambda: seen.position[0] > 0.45 + 0.9 * 0.4)
        stamps = np.array([stamp for stamp, _ in seen.parts["pose"]])
        assert np.diff(stamps).min() < -29e9
        during = np.count_nonzero(np.abs(np.diff([stamp for stamp, _ in seen.parts["wrench"]])) > 0.2e9)
        assert during >= 1
        assert arm.faults() == []
    finally:
        arm.close()
