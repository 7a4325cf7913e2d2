"""The last cap before an arm: nothing that comes out of it is beyond it, and nothing within it is changed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.arm.set_point.set_point_cap import SetPointCap
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.robot_io import Command
from robot_rl.errors import CommandRefusedError, ConfigError
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, rotvec_from_quat

CAP = ArmCap()
DOWN = np.array([0.0, 1.0, 0.0, 0.0])
point = st.tuples(st.floats(-0.2, 1.2), st.floats(-0.8, 0.8), st.floats(-0.5, 1.0)).map(np.array)
rotvec = st.tuples(*[st.floats(-1.5, 1.5)] * 3).map(np.array)


def outside(position):
    return float(np.linalg.norm(position - np.clip(position, CAP.cap_box_low, CAP.cap_box_high)))


@given(here=point, there=point, turn=rotvec)
def test_what_passes_is_near_the_tcp_and_no_further_out_than_it(here, there, turn):
    pose, command = Pose(here, DOWN), Command(1, 0.3, Pose(there, quat_multiply(DOWN, quat_from_rotvec(turn))))
    try:
        capped = SetPointCap(CAP).apply(command, pose).T_base_target
    except CommandRefusedError:
        assert outside(there) > outside(here)
        return
    angle = np.linalg.norm(rotvec_from_quat(quat_multiply(quat_conjugate(DOWN), capped.quaternion)))
    assert np.linalg.norm(capped.position - here) <= CAP.cap_lead + 1e-12
    assert angle <= CAP.cap_turn + 1e-9
    assert outside(capped.position) <= outside(here) + 1e-12


@given(here=point, there=point, turn=rotvec)
def test_what_the_safety_node_passes_is_not_changed(here, there, turn):
    guard, pose = CommandGuard(CommandLimits()), Pose(here, DOWN)
    guard.measured_pose(pose, 1)
    guard.measured_wrench(np.zeros(6), 1)
    guard.release()  # outside the box it may come in
    passed = guard.check(Command(2, 0.3, Pose(there, quat_multiply(DOWN, quat_from_rotvec(turn)))), 2).command
    assert SetPointCap(CAP).apply(passed, pose) is passed
    assert SetPointCap(CAP).exceeded_by(CommandLimits()) == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"box_low": (0.29, -0.3, 0.0)}, "cap_box_low"),
        ({"box_high": (0.7, 0.3, 0.51)}, "cap_box_high"),
        ({"max_speed": 0.51, "reaction_time": 0.01}, "cap_speed"),
        ({"max_turn_rate": 2.6, "reaction_time": 0.01}, "cap_turn_rate"),
        ({"reaction_time": 0.14}, "cap_lead"),
        ({"max_turn_rate": 2.4}, "cap_turn"),
        ({"max_feedforward_force": 1.0}, "cap_feedforward_force"),
        ({"max_feedforward_torque": 0.1}, "cap_feedforward_torque"),
    ],
)
def test_each_limit_that_is_wider_is_named(change, name):
    wider = SetPointCap(CAP).exceeded_by(replace(CommandLimits(), **change))
    assert any(f"{name} " in sentence for sentence in wider), wider


def test_a_speed_above_the_cap_is_named_in_its_unit():
    cap = SetPointCap(CAP)
    assert cap.overspeed(np.array([0.49, 0, 0, 0, 0, 2.4])) is None
    assert cap.overspeed(np.array([0.4, 0.4, 0, 0, 0, 0])) == "the tcp moves at 0.57 m/s, the arm's own cap is 0.5 m/s"
    assert "3.00 rad/s" in cap.overspeed(np.array([0, 0, 0, 0, 3.0, 0]))


def test_a_box_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="cap_box_low"):
        SetPointCap(replace(CAP, cap_box_low=(0.7, 0.0, 0.0)))


def test_a_wrench_beyond_the_cap_is_refused_and_by_default_there_is_none():
    pose = Pose(np.array([0.5, 0.0, 0.2]), DOWN)
    command = Command(1, 0.3, pose, wrench=np.array([3.0, 4.0, 0.0, 0.0, 0.0, 0.5]))
    wide = SetPointCap(replace(CAP, cap_feedforward_force=5.0, cap_feedforward_torque=0.5))
    assert wide.apply(command, pose) is command
    with pytest.raises(CommandRefusedError, match=r"force is 5 N, the arm's own cap is 0 N \(cap_feedforward_force\)"):
        SetPointCap(CAP).apply(command, pose)
    with pytest.raises(CommandRefusedError, match=r"torque is 0.5 Nm, the arm's own cap is 0.4 Nm"):
        SetPointCap(replace(CAP, cap_feedforward_force=5.0, cap_feedforward_torque=0.4)).apply(command, pose)
