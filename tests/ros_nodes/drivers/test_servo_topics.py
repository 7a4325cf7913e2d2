"""The contract of arm drivers over `servo`, with a stand-in for MoveIt Servo, and the law that makes twists."""

import time

import numpy as np
import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest
from cartesian_controller import BASE, PERIOD, Controller
from geometry_msgs.msg import TwistStamped
from waiting import eventually

from robot_rl.arm.set_point.pose_servo import twist_towards
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply
from ros_nodes.drivers.servo import ServoConfig, ServoTopics
from ros_nodes.interface import convert
from ros_nodes.node.robot_node_base import RobotNode

TIMEOUT = 0.1
"""Servo's `incoming_command_timeout` [s]."""


class Servo(Controller):
    """Follows twists in its base's axes, and halts when none has come for a while."""

    def __init__(self, **options):
        self.twists = []
        self.newest = (0.0, np.zeros(6))
        super().__init__(**options)
        self.create_subscription(TwistStamped, "/servo_node/delta_twist_cmds", self._take_twist, 10)

    def _take_twist(self, message):
        assert message.header.frame_id == BASE
        self.newest = (time.monotonic(), convert.twist_of(message))
        self.twists.append(self.newest[1])

    def _move(self):
        came, twist = self.newest
        moving = twist if time.monotonic() - came < TIMEOUT else np.zeros(6)
        self.velocity, self.spin = moving[:3], moving[3:]
        self.position = self.position + moving[:3] * PERIOD
        self.quaternion = quat_multiply(quat_from_rotvec(moving[3:] * PERIOD), self.quaternion)
        self._publish()


class HostNode(RobotNode):
    max_age = 1.0

    def __init__(self, **options):
        super().__init__("robot_node", cli_args=["--ros-args", "-r", "__ns:=/cell"], **options)


class TestServo(ArmDriverContract):
    @pytest.fixture
    def arm(self, graph):
        graph.add(Servo)
        node = graph.add(HostNode)
        return ArmUnderTest(lambda host: ServoTopics(ServoConfig(), node))


def test_it_turns_to_the_set_point_and_sends_nothing_after_a_hold(graph):
    servo, node = graph.add(Servo), graph.add(HostNode)
    driver = ServoTopics(ServoConfig(), node)
    poses = []
    driver.start(lambda part, stamp, value: poses.append(value) if part == "pose" else None)
    assert eventually(lambda: poses and not driver.faults())
    aim = Pose(poses[-1].position, quat_multiply(quat_from_rotvec(np.array([0.1, -0.2, 0.3])), poses[-1].quaternion))
    driver.move_to(aim)
    assert eventually(lambda: abs(float(poses[-1].quaternion @ aim.quaternion)) > 1 - 1e-6)
    driver.hold()
    assert eventually(lambda: not servo.twists[-1].any())
    count = len(servo.twists)
    time.sleep(0.1)
    assert len(servo.twists) == count
    driver.close()


def test_twists_lead_straight_to_the_set_point_within_their_caps():
    rng = np.random.default_rng(0)
    for _ in range(100):
        pose, target = (Pose.from_rotvec(rng.normal(size=3), rng.normal(size=3)) for _ in range(2))
        twist = twist_towards(pose, target, gain=2.0, speed=1.0, turn_rate=0.5)
        way = target.position - pose.position
        assert np.allclose(twist[:3], way * min(2.0, 1.0 / np.linalg.norm(way)))
        assert np.linalg.norm(twist[3:]) <= 0.5 + 1e-12
        step = 1e-3
        turned = quat_multiply(quat_from_rotvec(twist[3:] * step), pose.quaternion)
        assert abs(turned @ target.quaternion) > abs(pose.quaternion @ target.quaternion)
    assert not twist_towards(target, target, 2.0, 1.0, 0.5).any()
