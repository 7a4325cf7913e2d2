"""An arm whose Cartesian controller is behind topics, such as CRISP's: an `ArmDriver`.

The controller is told poses (`target_pose`) and says poses (`current_pose`), joint states, and perhaps a twist; a
sensor or an estimate says the wrench, and a gripper's controller its joint. A controller that tells no twist has it
differentiated from its poses, over 30 ms: such a twist lags by half of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from robot_rl.arm.driver import Take
from robot_rl.arm.gripper_scale import GripperScale
from robot_rl.arm.twist_estimator import TwistFromPoses
from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import RobotNodeConfig
from robot_rl.env.state_assembler import measurement_fault
from robot_rl.errors import ConfigError, SpecError
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.robot_node_base import RobotNode

OURS = (topics.POSE, topics.TWIST, topics.WRENCH, topics.JOINTS, topics.TOOL)
"""What the node publishes itself."""


class CartesianTopics:
    """The controller's topics.

    Args:
        node: Whose publishers and subscriptions.
        config: What the topics are called.

    Raises:
        ConfigError: if the controller's topics are also ours, or half a gripper is named.
    """

    def __init__(self, node: RobotNode, config: RobotNodeConfig) -> None:
        self._node, self._config = node, config
        self._gripper = GripperScale(config.gripper_closed, config.gripper_opened, config.gripper_width)
        self._check_names()
        self._take: Take = _nobody
        self._pose: tuple[int, Pose] | None = None
        self._frame = ""  # of the poses: some controllers refuse set-points in another
        self._twist = TwistFromPoses()
        self._target = self._publisher(PoseStamped, config.target_topic)
        self._grip = self._publisher(Float64MultiArray, config.gripper_topic) if config.gripper_topic else None
        self._listen(PoseStamped, config.pose_topic, self._take_pose)
        if config.twist_topic:
            self._listen(TwistStamped, config.twist_topic, self._take_twist)
        if config.wrench_topic:
            self._listen(WrenchStamped, config.wrench_topic, self._take_wrench)
        self._listen(JointState, config.joints_topic, self._take_joints)
        if config.gripper_topic:
            self._listen(JointState, config.gripper_state_topic, self._take_gripper)

    # As an `ArmDriver`.

    def start(self, take: Take) -> None:
        """From now on, hands on every measurement."""
        self._take = take

    def move_to(self, T_base_target: Pose) -> None:
        """Publishes a set-point, in the frame in which the controller says its pose."""
        self._target.publish(convert.pose_message(self._node.wall.now(), T_base_target, self._frame))

    def move_gripper(self, width: float) -> None:
        """Publishes a set-point of the gripper."""
        if self._grip is not None:
            self._grip.publish(Float64MultiArray(data=[self._gripper.value_of(width)]))

    def hold(self) -> None:
        """Makes the pose that was just measured the set-point.

        Where that is too old, the set-point stays as it was: it leads the arm by little, and to go back to a pose of
        some time ago would be a motion.
        """
        if self._pose is not None and self._age() <= self._config.max_age:
            self.move_to(self._pose[1])

    def faults(self) -> list[str]:
        """Why the arm would not obey now."""
        faults, topic = [], self._target.topic_name
        if self._pose is None:
            faults.append(
                f"nobody says on {self._topic(self._config.pose_topic)} where the arm is; is its controller active?"
            )
        elif (age := self._age()) > self._config.max_age:
            faults.append(f"the arm's newest pose is {age:.2f} s old; is its controller still active?")
        if not self._target.get_subscription_count():
            faults.append(f"no controller listens to {topic}; is it active, and in this ROS domain?")
        writers = sorted(info.node_name for info in self._node.get_publishers_info_by_topic(topic))
        if len(writers) > 1:
            faults.append(f"{len(writers)} nodes publish on {topic}: {', '.join(writers)}; only one may")
        return faults

    # What the controller says.

    def _take_pose(self, message: PoseStamped) -> None:
        stamp, pose = self._stamp(message), convert.pose_of(message.pose)
        if fault := measurement_fault(stamp, self._pose[0] if self._pose is not None else -1, (pose.position,)):
            raise SpecError(f"the pose's {fault}")
        self._pose, self._frame = (stamp, pose), message.header.frame_id
        self._take("pose", stamp, pose)
        if not self._config.twist_topic:
            self._take("twist", stamp, self._twist.add(stamp, pose))
        if not self._config.wrench_topic:
            self._take("wrench", stamp, np.zeros(6))

    def _take_twist(self, message: TwistStamped) -> None:
        twist = convert.twist_of(message)
        self._take("twist", self._stamp(message), self._turned(twist, to_base=self._config.twist_frame == "tcp"))

    def _take_wrench(self, message: WrenchStamped) -> None:
        wrench = convert.wrench_of(message)
        self._take("wrench", self._stamp(message), self._turned(wrench, to_tcp=self._config.wrench_frame == "base"))

    def _take_joints(self, message: JointState) -> None:
        config = self._config
        if config.gripper_joint and set(message.name) == {config.gripper_joint}:
            return  # a gripper that speaks for itself on the same topic
        joints = convert.joints_of(message, config.joint_names, config.gripper_joint)
        self._take("joints", self._stamp(message), joints)

    def _take_gripper(self, message: JointState) -> None:
        name = self._config.gripper_joint
        if name not in message.name:
            return  # the arm's joints on the same topic
        value = message.position[list(message.name).index(name)]
        self._take("gripper", self._stamp(message), self._gripper.width_of(value))

    # Odds and ends.

    def _turned(self, six: np.ndarray, *, to_base: bool = False, to_tcp: bool = False) -> np.ndarray:
        """Two vectors, shape (6,), from the axes of the tcp to those of the base, the other way, or as they are."""
        if not (to_base or to_tcp):
            return six
        if self._pose is None:
            raise SpecError(f"its axes are those of the {'tcp' if to_base else 'base'}, but no pose has come yet")
        q = self._pose[1].quaternion if to_base else quat_conjugate(self._pose[1].quaternion)
        return np.concatenate((quat_rotate(q, six[:3]), quat_rotate(q, six[3:])))

    def _stamp(self, message: Any) -> int:
        stamp = convert.stamp_of(message.header.stamp)
        if stamp == 0:
            self._node.problem(
                f"a {type(message).__name__} of the controller has no stamp: that of its arrival is taken"
            )
            return self._node.wall.now()
        return stamp

    def _age(self) -> float:
        return (self._node.wall.now() - self._pose[0]) / NS_PER_S if self._pose is not None else math.inf

    def _topic(self, name: str) -> str:
        return self._node.resolve_topic_name(name)

    def _publisher(self, kind: type[Any], name: str) -> Any:
        return self._node.create_publisher(kind, name, qos.COMMAND)

    def _listen(self, kind: type[Any], name: str, callback: Callable[[Any], None]) -> None:
        topic = topics.Topic(name, kind, QoSProfile(depth=1), "", "", "")
        self._node.subscribe(topic, callback, qos.READING)

    def _check_names(self) -> None:
        config = self._config
        if bool(config.gripper_topic) != bool(config.gripper_joint):
            raise ConfigError("a gripper needs both gripper_topic and gripper_joint; leave both out if there is none")
        ours = {self._topic(topic.name) for topic in OURS}
        for parameter in ("pose_topic", "twist_topic", "wrench_topic", "joints_topic"):
            name = getattr(config, parameter)
            if name and self._topic(name) in ours:
                raise ConfigError(
                    f"{parameter}: this node publishes on {self._topic(name)} itself; give our nodes a namespace, e.g. "
                    "`robot-rl up robot --namespace cell` or `--ros-args -r __ns:=/cell`"
                )


def _nobody(part: str, stamp: int, value: Any) -> None:
    """What is measured before anybody wants it."""
