"""The contract of arm drivers over a controller of joint positions, with a simulated ros2_control in its place."""

import numpy as np
import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from waiting import eventually

from robot_rl.errors import ConfigError
from ros_nodes.drivers.joint_topics import JointTopics, JointTopicsConfig
from ros_nodes.interface import convert
from ros_nodes.node.robot_node_base import RobotNode
from sim.arm.fr3 import HOME
from sim.arm.urdf import arm_urdf

NAMES = [f"joint{number}" for number in range(1, 8)]
LAG = 0.03
"""Time constant with which the joints follow [s]."""
PERIOD = 0.01


class Controllers(RobotNode):
    """forward_position_controller and joint_state_broadcaster of an arm that follows with a lag."""

    def __init__(self, **options):
        super().__init__("controller_manager", **options)
        self.position, self.velocity, self.command = HOME.copy(), np.zeros(7), None
        self.commands, self.measures = [], True
        self._states = self.create_publisher(JointState, "/joint_states", 10)
        self.create_subscription(
            Float64MultiArray, "/forward_position_controller/commands", self._take, QoSProfile(depth=1)
        )
        self.timer(PERIOD, self._move)

    def _take(self, message):
        self.command = np.array(message.data)
        self.commands.append(self.command)

    def _move(self):
        if self.command is not None:
            change = (self.command - self.position) * PERIOD / LAG
            self.position, self.velocity = self.position + change, change / PERIOD
        if self.measures:
            values = [0.02, *self.position.tolist()], [0.0, *self.velocity.tolist()]
            message = JointState(name=["finger", *NAMES], position=values[0], velocity=values[1])
            message.header = convert.header(self.wall.now(), "")
            self._states.publish(message)


class HostNode(RobotNode):
    max_age = 1.0

    def __init__(self, **options):
        super().__init__("robot_node", cli_args=["--ros-args", "-r", "__ns:=/cell"], **options)


@pytest.fixture
def config(tmp_path):
    (tmp_path / "arm.urdf").write_text(arm_urdf())
    return JointTopicsConfig(urdf=str(tmp_path / "arm.urdf"), tip="flange", joint_names=tuple(NAMES))


class TestJointTopics(ArmDriverContract):
    @pytest.fixture
    def arm(self, graph, config):
        graph.add(Controllers)
        node = graph.add(HostNode)
        return ArmUnderTest(lambda host: JointTopics(config, node), gripper_width=0.0)


def test_it_begins_without_a_jump_and_a_silent_arm_stays_stopped_until_somebody_consents(graph, config):
    controllers, node = graph.add(Controllers), graph.add(HostNode)
    driver, poses = JointTopics(config, node), []
    driver.start(lambda part, stamp, value: part == "pose" and poses.append(value))
    assert eventually(lambda: len(poses) > 5)
    assert driver.joint_names == tuple(NAMES)
    np.testing.assert_allclose(controllers.commands[0], HOME, atol=1e-9)
    controllers.measures = False
    assert eventually(lambda: any("no joint state has come on /joint_states" in text for text in driver.faults()), 5.0)
    controllers.measures = True
    assert eventually(lambda: len(poses) > 50)
    assert driver.faults(), "a lost connection stays until a person has consented"
    driver.recover()
    assert driver.faults() == []
    other = graph.add(lambda **options: RobotNode("rqt", **options))
    other.create_publisher(Float64MultiArray, "/forward_position_controller/commands", 1)
    assert eventually(lambda: any("2 nodes publish on" in text for text in driver.faults()))
    driver.close()


def test_what_is_missing_is_named(graph, config):
    node = graph.add(HostNode)
    with pytest.raises(ConfigError, match="`urdf`, the path of its URDF file, and `tip`"):
        JointTopics(JointTopicsConfig(), node)
    driver = JointTopics(config, node)
    assert any("no controller listens to /forward_position_controller/commands; activate" in t for t in driver.faults())
    driver.close()
