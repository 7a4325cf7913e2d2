"""Pose and Jacobian of chains: against MuJoCo, against finite differences, and against each other."""

import mujoco
import numpy as np
import pytest
from chain_model import chain_spec, forward

from robot_rl.arm.kinematics.chain import Chain, Joint, quat_from_rpy
from robot_rl.arm.kinematics.so101 import so101_chain
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose, quat_from_rotvec, quat_to_matrix


def random_pose(rng):
    return Pose.from_rotvec(rng.normal(0, 0.2, 3), rng.normal(0, 1, 3))


def random_chain(seed):
    rng = np.random.default_rng(seed)
    joints = [
        Joint(f"j{i}", random_pose(rng), rng.normal(size=3), -2.0, 2.0, slides=bool(rng.random() < 0.3))
        for i in range(rng.integers(1, 8))
    ]
    return Chain(joints, random_pose(rng))


CHAINS = [so101_chain(), *(random_chain(seed) for seed in range(8))]


@pytest.mark.parametrize("chain", CHAINS)
def test_points_lead_from_the_base_to_the_tool_and_a_joint_moves_only_those_behind_it(chain):
    rng = np.random.default_rng(0)
    for joint in range(chain.size):
        position = rng.uniform(chain.low, chain.high)
        moved = np.where(np.arange(chain.size) == joint, 0.5 * (chain.low + position), position)
        before, after = chain.points(position), chain.points(moved)
        assert before.shape == (chain.size + 2, 3)
        assert before[0] == pytest.approx([0, 0, 0])
        assert before[-1] == pytest.approx(chain.pose(position).position)
        assert after[: joint + 2] == pytest.approx(before[: joint + 2])
        behind = np.linalg.norm(np.diff(before[joint + 2 :], axis=0), axis=1)
        assert np.linalg.norm(np.diff(after[joint + 2 :], axis=0), axis=1) == pytest.approx(behind)


@pytest.mark.parametrize("chain", CHAINS)
def test_pose_and_jacobian_are_those_of_mujoco(chain):
    model = chain_spec(chain).compile()
    data = mujoco.MjData(model)
    for position in np.random.default_rng(0).uniform(chain.low, chain.high, (10, chain.size)):
        xyz, rotation, J = forward(model, data, position)
        pose = chain.pose(position)
        assert pose.position == pytest.approx(xyz, abs=1e-9)
        assert pose.matrix == pytest.approx(rotation, abs=1e-9)
        assert chain.pose_and_jacobian(position)[1] == pytest.approx(J, abs=1e-9)


@pytest.mark.parametrize("chain", CHAINS)
def test_the_jacobian_is_the_derivative_of_the_pose(chain):
    rng, step = np.random.default_rng(1), 1e-6
    position, velocity = rng.uniform(chain.low, chain.high), rng.normal(size=chain.size)
    before, after = (chain.pose(position + sign * step * velocity) for sign in (-1, 1))
    linear = (after.position - before.position) / (2 * step)
    twist = np.concatenate((linear, (after @ before.inverse()).rotvec / (2 * step)))
    assert chain.pose_and_jacobian(position)[1] @ velocity == pytest.approx(twist, abs=1e-6)


def test_two_chains_in_a_row_are_one():
    first, second = random_chain(20), random_chain(21)
    joints = list(second.joints)
    joints[0] = Joint("middle", first.tool @ joints[0].origin, joints[0].axis, -2, 2, joints[0].slides)
    renamed = [Joint(f"k{j.name}", j.origin, j.axis, j.low, j.high, j.slides) for j in joints]
    both = Chain([*first.joints, *renamed], second.tool)
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=first.size), rng.normal(size=second.size)
    expected = first.pose(a) @ second.pose(b)
    together = both.pose(np.concatenate((a, b)))
    assert together.position == pytest.approx(expected.position)
    assert together.matrix == pytest.approx(expected.matrix)


def test_a_full_turn_changes_nothing_and_turns_about_an_axis_add_up():
    chain = Chain([Joint("a", Pose.identity(), np.array([0, 0, 2.0]), -9, 9)], random_pose(np.random.default_rng(3)))
    assert chain.pose(np.array([0.3 + 2 * np.pi])).matrix == pytest.approx(chain.pose(np.array([0.3])).matrix)
    turned = quat_to_matrix(quat_from_rotvec(np.array([0, 0, 0.5])))
    assert turned @ chain.pose(np.array([0.3])).position == pytest.approx(chain.pose(np.array([0.8])).position)


def test_rpy_turns_about_the_fixed_axes_x_then_y_then_z():
    turns = np.diag((0.3, -0.7, 1.9))
    about = [quat_to_matrix(quat_from_rotvec(turn)) for turn in turns]
    assert quat_to_matrix(quat_from_rpy(0.3, -0.7, 1.9)) == pytest.approx(about[2] @ about[1] @ about[0])


def test_the_gripper_of_an_so101_points_forward_and_out_at_zero():
    pose = so101_chain().pose(np.zeros(5))
    assert pose.position == pytest.approx([0.3914, 0.0, 0.2265], abs=1e-4)  # 39 cm of reach: the arm stretched out
    assert pose.matrix[:, 2] == pytest.approx([1.0, 0.0, 0.0], abs=1e-4)


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        ([], "got none"),
        ([Joint("a", Pose.identity(), np.eye(3)[0], 0, 1)] * 2, "different names, got a, a"),
        ([Joint("a", Pose.identity(), np.eye(3)[0], 1, 1)], "lower limit of a is not below"),
    ],
)
def test_a_chain_that_is_none_is_refused(joints, message):
    with pytest.raises(ConfigError, match=message):
        Chain(joints, Pose.identity())


def test_limits_of_another_arm_that_leave_no_room_are_named():
    chain = so101_chain()
    narrowed = chain.narrowed(chain.low - 1, np.full(5, 1.0))
    assert narrowed.low == pytest.approx(chain.low)
    assert narrowed.high == pytest.approx(np.full(5, 1.0))
    with pytest.raises(ConfigError, match="range of elbow_flex does not overlap"):
        chain.narrowed(np.array([-1, -1, 2.0, -1, -1]), np.full(5, 3.0))
