"""A stand-in for a Cartesian controller as CRISP's: it takes `target_pose`, moves there, and says where it is.

Like CRISP's, it refuses set-points in another frame than its base, says its twist in the frame of the tool, and takes
the gripper's values as its own controller counts them.
"""

import math
import time

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from robot_rl.geometry import (
    Pose,
    quat_conjugate,
    quat_from_rotvec,
    quat_multiply,
    quat_rotate,
    rotvec_from_quat,
)
from ros_nodes.interface import convert
from ros_nodes.node.robot_node_base import RobotNode

BASE = "fr3_link0"
LAG = 0.2
"""Time constant with which it follows [s]."""
PERIOD = 0.01
TILTED = np.array([math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0])
"""A quarter turn about x: the tcp's y is the base's z."""


class Controller(RobotNode):
    """Publishes 100 times a second; each way of being broken can be switched on."""

    def __init__(self, quaternion=TILTED, position=(0.5, 0.0, 0.2), **options):
        super().__init__("cartesian_impedance_controller", **options)
        self.position, self.quaternion = np.array(position), np.array(quaternion)
        self.velocity, self.spin = np.zeros(3), np.zeros(3)
        self.target, self.target_quaternion, self.targets, self.refused = None, None, [], []
        self.width, self.gripper_values = 0.8, []  # a Robotiq counts its closing angle
        self.wrench, self.wrench_frame = np.zeros(6), BASE
        self.base = BASE  # as its poses name it
        self.measures, self.stamp_shift, self.spoil = True, 0, None
        self._pose = self.create_publisher(PoseStamped, "/current_pose", 10)
        self._twist = self.create_publisher(TwistStamped, "/current_twist", 10)
        self._joints = self.create_publisher(JointState, "/joint_states", 10)
        self._wrench = self.create_publisher(WrenchStamped, "/external_wrench", 10)
        self.create_subscription(PoseStamped, "/target_pose", self._take_target, QoSProfile(depth=1))
        self.create_subscription(Float64MultiArray, "/gripper/commands", self._take_gripper, 1)
        self._moved = time.monotonic()
        self.timer(PERIOD, self._move)

    def _take_target(self, message):
        if message.header.frame_id != BASE:
            self.refused.append(message.header.frame_id)
            return
        pose = convert.pose_of(message.pose)
        self.target, self.target_quaternion = pose.position, pose.quaternion
        self.targets.append(self.target)

    def _take_gripper(self, message):
        self.gripper_values.append(message.data[0])
        self.width = message.data[0]

    def _move(self):
        now = time.monotonic()
        elapsed, self._moved = now - self._moved, now
        self.velocity, self.spin = np.zeros(3), np.zeros(3)
        if self.target is not None:
            share = 1 - math.exp(-elapsed / LAG)
            way = (self.target - self.position) * share
            self.position, self.velocity = self.position + way, way / elapsed
            turn = rotvec_from_quat(quat_multiply(quat_conjugate(self.quaternion), self.target_quaternion)) * share
            self.quaternion, self.spin = quat_multiply(self.quaternion, quat_from_rotvec(turn)), turn / elapsed
        if self.measures:
            self._publish()

    def _publish(self):
        stamp = self.wall.now() + self.stamp_shift
        pose = convert.pose_message(stamp, Pose(self.position, self.quaternion), self.base)
        if self.spoil is not None:
            pose.pose.position.y = self.spoil
        self._pose.publish(pose)
        in_tool = quat_rotate(quat_conjugate(self.quaternion), self.velocity)
        self._twist.publish(convert.twist_message(stamp, np.concatenate((in_tool, self.spin)), "tool"))
        self._wrench.publish(convert.wrench_message(stamp, self.wrench, self.wrench_frame))
        names = ["finger_joint", *(f"fr3_joint{i}" for i in range(1, 8))]
        joints = JointState(name=names, position=[self.width, *range(1, 8)], velocity=[0.0] * 8)
        joints.header.stamp = convert.time_message(stamp)
        self._joints.publish(joints)
