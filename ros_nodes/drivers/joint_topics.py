"""An arm whose joint positions are commanded over topics, as ros2_control's forward_command_controller takes them.

It is an `ArmDriver`: set-points of the tcp become those of the joints by our own differential inverse kinematics, on
the chain of a URDF file. If this program dies, the last positions stay in force: the arm reaches them and holds.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
from pydantic.dataclasses import dataclass
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from robot_rl.arm.driver import DriverHost, Receive
from robot_rl.arm.joints.joint_arm import JointArm, JointArmConfig
from robot_rl.arm.joints.joint_port import JointReading
from robot_rl.arm.kinematics.chain import Chain
from robot_rl.arm.kinematics.urdf import chain_from_urdf
from robot_rl.config.field_types import STRICT
from robot_rl.errors import ConfigError, RobotLostError
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.robot_node_base import RobotNode

PATIENCE = 0.1
"""Longest time between two joint states [s]."""
RESOLUTION = 1e-4
"""Differences below this count as none [rad]."""


@dataclass(frozen=True, config=STRICT)
class JointTopicsConfig(JointArmConfig):
    """Topics of a controller of joint positions; the defaults are those of ros2_control."""

    command_topic: str = "/forward_position_controller/commands"
    """Where the controller takes positions (Float64MultiArray), in the order of `joint_names`."""
    joints_topic: str = "/joint_states"
    """Where positions and velocities are published (JointState)."""
    joint_names: tuple[str, ...] = ()
    """The joints in the order of the controller's parameter `joints`, to check that the chain has the same; none: as in
    the chain."""
    urdf: str = ""
    """URDF file with the kinematics."""
    tip: str = ""
    """Link of the URDF file whose frame is the tcp's."""


class TopicPort:
    """The controller as a `JointPort`.

    Args:
        node: Whose publisher and subscription; somebody else spins it.
        config: Names of the topics.
        chain: The kinematics.
    """

    has_gripper = False
    resolution = RESOLUTION

    def __init__(self, node: RobotNode, config: JointTopicsConfig, chain: Chain) -> None:
        self._node, self._chain = node, chain
        self._arrived = threading.Condition()
        self._newest: JointReading | None = None
        self._read = -1  # stamp of the reading that was returned last [ns]
        self._commands = node.create_publisher(Float64MultiArray, config.command_topic, qos.COMMAND)
        self._sole = node.sole_writer(self._commands.topic_name, node.get_name())
        self._topic = node.resolve_topic_name(config.joints_topic)
        topic = topics.Topic(self._topic, JointState, QoSProfile(depth=1), "", "", "")
        node.subscribe(topic, self._take, qos.READING)

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Those of the URDF file."""
        return self._chain.low, self._chain.high

    def engage(self) -> JointReading:
        """Command the measured positions.

        Raises:
            RobotLostError: if none are measured.
        """
        reading = self.read()
        self.write(reading.position, None)
        return reading

    def read(self) -> JointReading:
        """Return the next joint state.

        Raises:
            RobotLostError: if none comes in time.
        """
        deadline = time.monotonic() + PATIENCE
        with self._arrived:
            while self._newest is None or self._newest.stamp <= self._read:
                if not self._arrived.wait(deadline - time.monotonic()):
                    raise RobotLostError(
                        f"no joint state has come on {self._topic} for {PATIENCE:g} s; is the joint_state_broadcaster "
                        "active, in this ROS domain?"
                    )
            self._read = self._newest.stamp
            return self._newest

    def write(self, position: np.ndarray, opening: float | None) -> None:
        """Command positions [rad], shape (n,)."""
        del opening  # there is no gripper
        self._commands.publish(Float64MultiArray(data=position.tolist()))

    def faults(self) -> list[str]:
        """Return why the controller would not obey now."""
        faults = [] if self._newest is not None else [f"no joint state has come on {self._topic} yet"]
        if not self._commands.get_subscription_count():
            faults.append(
                f"no controller listens to {self._commands.topic_name}; activate it: ros2 control switch_controllers "
                f"--activate {self._commands.topic_name.split('/')[1]}"
            )
        return [*faults, *filter(None, [self._sole.conflict()])]

    def close(self) -> None:
        """Do nothing: publisher and subscription end with the node, and the arm keeps the last positions."""

    def _take(self, message: JointState) -> None:
        joints = convert.joints_of(message, self._chain.names)
        stamp = convert.stamp_of(message.header.stamp) or self._node.wall.now()
        with self._arrived:
            self._newest = JointReading(stamp, joints.position, joints.velocity, None)
            self._arrived.notify_all()


class JointTopics(JointArm):
    """The driver.

    Args:
        config: Its settings.
        host: The node that runs it.

    Raises:
        ConfigError: if the host is no ROS node, or there is no valid URDF file.
    """

    Config = JointTopicsConfig

    def __init__(self, config: JointTopicsConfig, host: DriverHost) -> None:
        if not isinstance(host, RobotNode):
            raise ConfigError("the driver joint_topics works by ROS topics; run it in robot_node")
        if not (config.urdf and config.tip):
            raise ConfigError("joint_topics needs the arm's kinematics: `urdf`, the path of its URDF file, and `tip`")
        chain = chain_from_urdf(Path(config.urdf).expanduser(), config.tip, config.joint_names)
        self.joint_names = chain.names
        """The arm's joints, in the order in which they are reported."""
        super().__init__(TopicPort(host, config, chain), chain, config, host)
        self._engaged = False

    def start(self, receive: Receive) -> None:
        """Begin to measure; the first joint state comes when the node is spun."""
        self._receive = receive
        self._thread.start()

    def _cycle(self) -> None:
        if not self._engaged:
            try:
                self._engage()
            except RobotLostError:
                return  # until the first joint state
            self._engaged = True
        super()._cycle()
