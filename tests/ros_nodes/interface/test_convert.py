import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped, Transform
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image, JointState, Joy
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from robot_rl.env.robot_io import Command, SetPoint
from robot_rl.env.state_assembler import Joints, Tool
from robot_rl.errors import SpecError
from robot_rl.geometry import Pose, quat_from_rotvec
from robot_rl.teleop.intervention import Intervention
from ros_nodes.interface import convert

real = st.floats(-1e6, 1e6)
six = st.lists(real, min_size=6, max_size=6).map(np.array)
stamps = st.integers(0, (2**31 - 1) * 10**9)  # ROS counts seconds in 32 bits
poses = st.builds(
    Pose,
    st.lists(real, min_size=3, max_size=3).map(np.array),
    st.lists(st.floats(-3, 3), min_size=3, max_size=3).map(lambda v: quat_from_rotvec(np.array(v))),
)


def crossed(message):
    """The message after a journey."""
    return deserialize_message(serialize_message(message), type(message))


@given(stamps, poses)
def test_a_pose_crosses_without_loss(stamp, pose):
    message = crossed(convert.pose_message(stamp, pose))
    back = convert.pose_of(message.pose)
    assert convert.stamp_of(message.header.stamp) == stamp
    assert message.header.frame_id == "base"
    assert np.array_equal(back.position, pose.position)
    assert np.array_equal(back.quaternion, pose.quaternion)


def test_ros_writes_w_last():
    half = np.sqrt(0.5)
    message = convert.pose_message(0, Pose(np.zeros(3), np.array([half, 0.0, 0.0, half])))  # a quarter turn about z
    q = message.pose.orientation
    assert (q.x, q.y, q.z, q.w) == (0.0, 0.0, half, half)


def test_a_pose_without_orientation_is_refused():
    empty = PoseStamped()
    empty.pose.orientation.w = 0.0
    with pytest.raises(SpecError, match="unit length"):
        convert.pose_of(empty.pose)


@given(stamps, six)
def test_twist_and_wrench_cross_without_loss(stamp, values):
    assert np.array_equal(convert.twist_of(crossed(convert.twist_message(stamp, values))), values)
    assert np.array_equal(convert.wrench_of(crossed(convert.wrench_message(stamp, values))), values)


@given(stamps, st.lists(st.tuples(real, real), min_size=1, max_size=9), real, real)
def test_joints_and_tool_cross_without_loss(stamp, joints, width, force):
    position, velocity = np.array(joints).T
    names = [f"j{number}" for number in range(len(joints))]
    back = convert.joints_of(crossed(convert.joints_message(stamp, names, Joints(position, velocity))))
    assert np.array_equal(back.position, position)
    assert np.array_equal(back.velocity, velocity)
    assert convert.tool_of(crossed(convert.tool_message(stamp, Tool(width, force)))) == Tool(width, force)


def test_incomplete_joint_states_are_refused():
    with pytest.raises(SpecError, match="2 names, 2 positions and 0 velocities"):
        convert.joints_of(JointState(name=["a", "b"], position=[0.0, 1.0]))
    with pytest.raises(SpecError, match="names \\['finger'\\]"):
        convert.tool_of(JointState(name=["finger"], position=[0.0]))


@given(stamps, st.floats(1e-3, 1e4), poses, st.none() | st.floats(0, 0.1))
def test_a_command_crosses_to_the_nanosecond(stamp, ttl, target, width):
    back = convert.command_of(crossed(convert.command_message(Command(stamp, ttl, target, width))))
    assert (back.stamp, back.gripper_width) == (stamp, width)
    assert back.ttl == pytest.approx(ttl, abs=1e-9)
    assert np.array_equal(back.T_base_target.position, target.position)
    assert np.array_equal(back.T_base_target.quaternion, target.quaternion)


@given(stamps, st.dictionaries(st.sampled_from("abc"), st.tuples(poses, st.none() | st.floats(0, 0.1)), min_size=1))
def test_a_command_of_several_arms_crosses_arm_by_arm(stamp, arms):
    command = Command.of_arms(stamp, 0.25, {arm: SetPoint(pose, width) for arm, (pose, width) in arms.items()})
    message = crossed(convert.command_message(command))
    back = convert.command_of(message)
    assert message.header.frame_id == "cell"
    assert list(back.arms) == list(arms)
    for arm, (pose, width) in arms.items():
        assert np.array_equal(back.arms[arm].T_base_target.position, pose.position)
        assert np.array_equal(back.arms[arm].T_base_target.quaternion, pose.quaternion)
        assert back.arms[arm].gripper_width == width
    assert back.T_base_target is next(iter(back.arms.values())).T_base_target


@given(stamps, poses, st.none() | st.floats(0, 0.1), six)
def test_a_wrench_crosses_with_its_command(stamp, target, width, wrench):
    back = convert.command_of(crossed(convert.command_message(Command(stamp, 0.2, target, width, wrench=wrench))))
    assert np.array_equal(back.wrench, wrench)
    assert (back.gripper_width, back.stamp) == (width, stamp)
    points = {"left": SetPoint(target, None, wrench), "right": SetPoint(target, width)}
    message = crossed(convert.command_message(Command.of_arms(stamp, 0.2, points)))
    assert message.joint_names[:3] == ["left/tcp", "left/force", "left/torque"]
    several = convert.command_of(message)
    assert np.array_equal(several.arms["left"].wrench, wrench)
    assert several.arms["right"].wrench is None
    assert several.wrench is several.arms["left"].wrench


def test_without_a_wrench_a_command_names_none():
    message = convert.command_message(Command(1, 0.2, Pose.identity(), 0.04))
    assert message.joint_names == ["tcp", "gripper"]
    assert convert.command_of(message).wrench is None


def test_a_stop_is_a_trajectory_without_points():
    message = crossed(convert.stop_message(7))
    assert convert.command_of(message) is None
    assert convert.stamp_of(message.header.stamp) == 7


def test_other_trajectories_are_refused():
    point = MultiDOFJointTrajectoryPoint()
    two = MultiDOFJointTrajectoryPoint(transforms=[Transform(), Transform()])
    for names, points in (
        (["arm"], [point]),
        (["tcp"], [point, point]),
        (["tcp"], [point]),
        ([], [point]),
        (["left/tcp", "tcp"], [two]),
        (["left/tcp", "left/tcp"], [two]),
        (["left/tcp", "right/gripper"], [two]),
        (["left/gripper", "left/tcp"], [two]),
        (["left/tcp", "right/tcp", "up/tcp"], [two]),
        (["tcp", "force"], [two]),
        (["tcp", "torque"], [two]),
        (["force", "tcp"], [two]),
        (["left/tcp", "right/force"], [two]),
    ):
        with pytest.raises(SpecError):
            convert.command_of(MultiDOFJointTrajectory(joint_names=names, points=points))


def test_an_image_crosses_pixel_by_pixel():
    image = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    assert np.array_equal(convert.image_of(crossed(convert.image_message(0, image, "f"))), image)


@pytest.mark.parametrize(("encoding", "channels"), [("bgr8", 3), ("rgba8", 4), ("bgra8", 4), ("rgb8", 3)])
def test_other_encodings_and_padded_rows_are_read(encoding, channels):
    image = np.random.default_rng(0).integers(0, 255, (4, 6, 3), np.uint8)
    stored = np.zeros((4, 30), np.uint8)
    pixels = np.zeros((4, 6, channels), np.uint8)
    pixels[:, :, :3] = image[:, :, ::-1] if encoding.startswith("bgr") else image
    stored[:, : 6 * channels] = pixels.reshape(4, -1)
    message = Image(height=4, width=6, encoding=encoding, step=30, data=stored.tobytes())
    assert np.array_equal(convert.image_of(message), image)


def test_what_is_no_image_is_refused():
    with pytest.raises(SpecError, match="valid: rgb8"):
        convert.image_of(Image(height=1, width=1, encoding="16UC1", step=2, data=b"00"))
    with pytest.raises(SpecError, match="has 5 bytes"):
        convert.image_of(Image(height=2, width=1, encoding="rgb8", step=3, data=b"00000"))


shares = st.lists(st.floats(-1, 1, width=32), min_size=6, max_size=6)


@given(stamps, st.booleans(), shares, st.sampled_from([-1, 0, 1]) | st.floats(-1, 1, width=32), st.none() | shares)
def test_an_intervention_crosses_without_loss(stamp, active, motion, gripper, wrench):
    pushed = np.array(wrench or np.zeros(6), np.float32)
    given_ = Intervention(stamp, active, np.array(motion, np.float32), float(gripper), pushed)
    back = convert.intervention_of(crossed(convert.intervention_message(given_)))
    assert (back.stamp, back.active, back.gripper) == (stamp, active, gripper)
    assert np.array_equal(back.motion, given_.motion)
    assert np.array_equal(back.wrench, pushed)
    assert len(convert.intervention_message(given_).axes) == (13 if pushed.any() else 6 + (abs(gripper) not in (0, 1)))


def test_broken_interventions_are_refused():
    with pytest.raises(SpecError, match="6 axes, 7 or 13, and 3 buttons, this one 1 and 3"):
        convert.intervention_of(Joy(axes=[0.0], buttons=[1, 0, 0]))
    with pytest.raises(SpecError, match="finite"):
        convert.intervention_of(Joy(axes=[float("nan")] * 6, buttons=[1, 0, 0]))
    for share in (float("nan"), -1.5):
        with pytest.raises(SpecError, match=r"gripper has to be in \[-1, 1\]"):
            convert.intervention_of(Joy(axes=[0.0] * 6 + [share], buttons=[1, 0, 0]))
