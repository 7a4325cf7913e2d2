"""Inverse kinematics: it arrives where it can, and never leaves the limits."""

import numpy as np
import pytest

from robot_rl.arm.kinematics.inverse import InverseKinematics
from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply

CHAIN = so101_chain()


def inside(rng, margin=0.2):
    return CHAIN.low + (CHAIN.high - CHAIN.low) * rng.uniform(margin, 1 - margin, 5)


def test_the_present_pose_is_reached_without_a_step():
    rng = np.random.default_rng(0)
    for position in (inside(rng) for _ in range(20)):
        assert InverseKinematics(CHAIN).solve(position, CHAIN.pose(position)).position == pytest.approx(position)


def test_poses_that_the_arm_can_take_are_reached_from_nearby():
    rng, solver = np.random.default_rng(1), InverseKinematics(CHAIN)
    for _ in range(50):
        position = inside(rng)
        solution = solver.solve(position + rng.normal(0, 0.05, 5), CHAIN.pose(position))
        assert solution.distance < 1e-4
        assert solution.angle < 5e-3


def test_a_centimetre_is_made_even_where_five_joints_cannot_turn_as_wanted():
    rng, solver = np.random.default_rng(2), InverseKinematics(CHAIN)
    distances = []
    for _ in range(100):
        position, step, turn = inside(rng), rng.normal(size=3), rng.normal(size=3)
        pose = CHAIN.pose(position)
        turned = quat_multiply(pose.quaternion, quat_from_rotvec(0.05 * turn / np.linalg.norm(turn)))
        target = Pose(pose.position + 0.01 * step / np.linalg.norm(step), turned)
        distances.append(solver.solve(position, target).distance)
    assert np.percentile(distances, 95) < 5e-4


def test_what_it_reports_to_remain_is_what_remains():
    rng, solver = np.random.default_rng(3), InverseKinematics(CHAIN)
    for _ in range(20):
        target = Pose.from_rotvec(rng.uniform(-0.6, 0.6, 3), rng.normal(size=3))
        solution = solver.solve(inside(rng), target)
        reached = CHAIN.pose(solution.position)
        assert solution.distance == pytest.approx(np.linalg.norm(reached.position - target.position))
        assert solution.angle == pytest.approx(np.linalg.norm((reached.inverse() @ target).rotvec), abs=1e-6)


def test_limits_hold_for_any_target_and_start():
    rng = np.random.default_rng(4)
    low, high = CHAIN.low * 0.5, CHAIN.high * 0.5
    solver = InverseKinematics(CHAIN.narrowed(low, high))
    for _ in range(200):
        target = Pose.from_rotvec(rng.normal(0, 1.0, 3), rng.normal(0, 2.0, 3))
        position = solver.solve(rng.uniform(CHAIN.low, CHAIN.high), target).position
        assert np.isfinite(position).all()
        assert (position >= low).all()
        assert (position <= high).all()


def test_a_joint_at_its_limit_is_made_up_for_by_the_others():
    start = np.array([0.0, -0.6, 0.9, 0.9, 0.0])
    down = Pose(CHAIN.pose(start).position - (0, 0, 0.02), CHAIN.pose(start).quaternion)
    free = InverseKinematics(CHAIN, turn_weight=1e-3).solve(start, down).position
    high = CHAIN.high.copy()
    high[1] = start[1] + 1e-6  # the shoulder would have gone further
    assert free[1] > high[1]
    solution = InverseKinematics(CHAIN.narrowed(CHAIN.low, high), turn_weight=1e-3).solve(start, down)
    assert solution.position[1] <= high[1]
    assert solution.distance < 1e-3
