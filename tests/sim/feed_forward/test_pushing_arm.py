"""A feed-forward wrench on the simulated arm: what it does there, when it ends, and that it stays in the workspace."""

from dataclasses import replace

import numpy as np
import pytest
from arm_rig import ArmRig

from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.action_mapping import AXES, SafetyFilter
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.robot_io import Command, SetPoint
from robot_rl.env.task import TaskSpec, Workspace
from robot_rl.errors import RobotRLError
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, quat_rotate, rotvec_from_quat
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.tasks.two_arms import handover

GAINS = ImpedanceGains()
SMALL = TaskSpec(
    "small",
    "stay in a small box",
    max_steps=100,
    control_period=0.05,
    workspace=Workspace(low=(-0.03, -0.03, -0.015), high=(0.03, 0.03, 0.03), yaw=0.2, tilt=0.15),
    wrench_axes=AXES,
    action_force=20.0,
    action_torque=2.0,
)
OUTSIDE, TURNED_OUTSIDE = 0.0025, 0.03
"""How far the tcp may swing out of the workspace [m, rad], as with steps alone: by its momentum, since the arm is a
spring."""
BOTH_OUTSIDE, BOTH_TURNED_OUTSIDE = 0.005, 0.04
"""The same where steps and wrench go the same way all the time: it is faster then."""


def push(rig, wrench, ttl=100.0, pose=None):
    rig.io.command(Command(rig.io.now(), ttl, pose or rig.start, wrench=np.array(wrench, float)))


def moved(rig):
    """By how much the tool has moved from the start, base frame [m], and turned, tcp frame [rad]."""
    here = rig.pose()
    turn = rotvec_from_quat(quat_multiply(quat_conjugate(rig.start.quaternion), here.quaternion))
    return here.position - rig.start.position, turn


@pytest.mark.parametrize("force", [(6.0, 0.0, 0.0), (0.0, -4.0, 0.0), (2.0, 3.0, -5.0)])
def test_a_force_moves_the_arm_from_its_set_point_by_itself_over_the_stiffness(force):
    rig = ArmRig()
    push(rig, (*force, 0, 0, 0))
    rig.sleep(2.0)
    way, turn = moved(rig)
    assert way == pytest.approx(quat_rotate(rig.start.quaternion, np.array(force)) / GAINS.translation, abs=2e-4)
    assert turn == pytest.approx(np.zeros(3), abs=2e-3)


@pytest.mark.parametrize("torque", [(1.0, 0.0, 0.0), (0.0, 0.0, -2.0)])
def test_a_torque_turns_it_by_itself_over_the_stiffness(torque):
    rig = ArmRig()
    push(rig, (0, 0, 0, *torque))
    rig.sleep(2.0)
    way, turn = moved(rig)
    assert turn == pytest.approx(np.array(torque) / GAINS.rotation, abs=2e-3)
    assert way == pytest.approx(np.zeros(3), abs=3e-4)


def test_what_is_pushed_against_feels_it():
    rig = ArmRig()
    pressing = rig.start.position + np.array([0.0, 0.0, -0.036])
    rig.go((0.0, 0.0, -0.036))
    rig.sleep(2.0)
    before = rig.contact_force()[2]
    assert before > 1.0
    push(rig, (0, 0, 12.0, 0, 0, 0), pose=Pose(pressing, rig.start.quaternion))  # down
    rig.sleep(2.0)
    assert rig.contact_force()[2] - before == pytest.approx(12.0, abs=1.5)


@pytest.mark.parametrize("end", ["expiry", "stop", "the next command"])
def test_it_ends_with_its_command(end):
    rig = ArmRig()
    push(rig, (0, 0, -16.0, 0, 0, 0), ttl=0.5 if end == "expiry" else 100.0)
    rig.sleep(0.5)
    held = rig.pose()
    assert held.position[2] - rig.start.position[2] > 0.006
    if end == "stop":
        rig.io.stop()
    elif end == "the next command":
        rig.io.command(Command(rig.io.now(), 100.0, held))
    rig.sleep(2.0)
    assert np.linalg.norm(rig.pose().position - held.position) < 5e-4  # with 16 N more, 8 mm


def test_with_a_command_delay_it_comes_as_late_and_a_stop_ends_one_that_has_not_come():
    rig = ArmRig(gains=replace(GAINS, delay=0.1))
    push(rig, (10.0, 0, 0, 0, 0, 0))
    rig.sleep(0.09)
    assert np.linalg.norm(moved(rig)[0]) < 1e-5
    rig.sleep(1.0)
    assert moved(rig)[0][0] == pytest.approx(0.005, abs=3e-4)
    rig.reset()
    push(rig, (10.0, 0, 0, 0, 0, 0))
    rig.sleep(0.05)
    rig.io.stop()
    rig.sleep(1.0)
    assert np.linalg.norm(moved(rig)[0]) < 1e-4


def test_a_wrench_of_zeros_changes_nothing_bit_for_bit():
    ends = []
    for wrench in (None, np.zeros(6)):
        rig = ArmRig()
        target = Pose(rig.start.position + np.array([0.02, -0.01, 0.01]), rig.start.quaternion)
        rig.io.command(Command(rig.io.now(), 0.4, target, wrench=wrench))
        rig.sleep(0.7)
        ends.append(np.concatenate((rig.data.qpos, rig.data.qvel)))
    assert np.array_equal(*ends)


def test_of_two_arms_each_has_its_own():
    cell = handover.make(handover.WorkcellOptions())
    cell.task.reset(0)
    io: MujocoRobotIO = cell.io
    start = io.read().arms
    wrenches = {"left": None, "right": np.array([0, 0, -8.0, 0, 0, 0])}
    points = {name: SetPoint(state.T_base_tcp, wrench=wrenches[name]) for name, state in start.items()}
    stay = Command.of_arms(io.now(), 5.0, points)
    io.command(stay)
    io.sleep_until(io.now() + NS_PER_S)
    up = {
        name: (state.T_base_tcp.position - start[name].T_base_tcp.position)[2] for name, state in io.read().arms.items()
    }
    assert up["right"] == pytest.approx(8.0 / io.gains.translation, abs=1e-3)
    assert abs(up["left"]) < 1e-3


def outside(rig, box):
    """How far the tcp is out of a workspace [m], and turned out of it [rad]."""
    way, (rx, ry, rz) = moved(rig)
    far = np.maximum(np.maximum(np.array(box.low) - way, way - np.array(box.high)), 0.0)
    return float(far.max()), max(abs(rz) - box.yaw, float(np.hypot(rx, ry)) - box.tilt, 0.0)


@pytest.mark.parametrize("attack", ["steps alone", "wrench alone", "random", "alternate", "both"])
def test_no_action_pushes_the_tcp_out_of_the_workspace(attack):
    rig, safety, rng = ArmRig(), SafetyFilter(SMALL), np.random.default_rng(1)
    period, most, turned = round(SMALL.control_period * NS_PER_S), 0.0, 0.0
    far = 0.0
    for step in range(400):
        if attack == "random":
            action = rng.uniform(-1.0, 1.0, 12)
        elif attack == "alternate":
            action = np.where(rng.uniform(size=12) < 0.5, -1.0, 1.0) * (1 if step % 8 < 4 else -1)
        else:
            if step % 40 == 0:
                corner = np.where(rng.uniform(size=12) < 0.5, -1.0, 1.0)
            action = corner.copy()
            if attack == "to the border and on":
                action[6:] = corner[:6]  # step and push the same way
        state = rig.io.read()
        rig.io.command(safety.apply(safety.check(action), state, rig.start, rig.io.now()).command)
        for _ in range(5):
            rig.io.sleep_until(rig.io.now() + period // 5)
            out, turn = outside(rig, SMALL.workspace)
            most, turned = max(most, out), max(turned, turn)
            far = max(far, float(np.abs(moved(rig)[0]).max()))
    assert far > 0.02, "it comes near the border"
    assert most < (BOTH_OUTSIDE if attack == "both" else OUTSIDE)
    assert turned < (BOTH_TURNED_OUTSIDE if attack == "both" else TURNED_OUTSIDE)


def test_what_the_last_check_lets_through_pushes_nothing_out_of_its_box():
    limits = CommandLimits(
        box_low=(0.47, -0.03, 0.09),
        box_high=(0.53, 0.03, 0.13),
        max_speed=0.1,
        max_feedforward_force=20.0,
        max_feedforward_torque=2.0,
    )
    rig, rng = ArmRig(), np.random.default_rng(2)
    guard, told = CommandGuard(limits), -1
    low, high = np.array(limits.box_low) - OUTSIDE, np.array(limits.box_high) + OUTSIDE
    for _ in range(1500):
        state = rig.io.read()
        if state.stamp > told:
            guard.measured_pose(state.T_base_tcp, state.stamp)
            guard.measured_wrench(state.wrench, state.stamp)
            told = state.stamp
        wrench = rng.choice([-1e6, -20.0, 0.0, 20.0, 1e6], 6)
        target = Pose(state.T_base_tcp.position + rng.uniform(-0.02, 0.02, 3), state.T_base_tcp.quaternion)
        command = Command(rig.io.now(), float(rng.choice([0.02, 0.1, 3.0])), target, wrench=wrench)
        try:
            rig.io.command(guard.check(command, rig.io.now()).command)
        except RobotRLError:
            rig.io.stop()
            guard.stop(rig.io.now())
        rig.sleep(float(rng.choice([0.004, 0.02, 0.1])))
        position = rig.pose().position
        assert (low <= position).all(), position
        assert (position <= high).all(), position
