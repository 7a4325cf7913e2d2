"""An arm whose Cartesian controller is behind topics, such as CRISP's: an `ArmDriver`.

The controller receives poses (`target_pose`) and publishes poses (`current_pose`), joint states, and perhaps a twist. A
sensor or an estimate publishes the wrench, and a gripper's controller its joint. Where there is no twist, it is
differentiated from the poses, over 30 ms: such a twist lags by half of that.

The frame in a header decides in whose axes a twist or a wrench is; one in a frame that is not known is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from pydantic.dataclasses import dataclass
from rclpy.duration import Duration
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from robot_rl.arm.driver import MOTION, DriverHost, Receive
from robot_rl.arm.gripper_scale import GripperScale
from robot_rl.arm.twist_estimator import TwistFromPoses
from robot_rl.clock import NS_PER_S
from robot_rl.config.field_types import STRICT, NonNegativeReal, PositiveReal, Real
from robot_rl.env.state_assembler import measurement_fault
from robot_rl.errors import ConfigError, SpecError
from robot_rl.geometry import Pose
from ros_nodes.drivers.controller_frames import ControllerFrames
from ros_nodes.drivers.controller_manager import ManagedController
from ros_nodes.drivers.gripper import ActionType, Gripper, GripperAction, GripperTopic
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.robot_node_base import RobotNode

OURS = (topics.POSE, topics.TWIST, topics.WRENCH, topics.JOINTS, topics.TOOL)
"""Topics that the node publishes itself."""
DELIVERY = Duration(nanoseconds=NS_PER_S // 2)
"""Longest time for which the end waits until the controller has the last set-point."""
RESOLUTION = 0.01
"""A change of the gripper's set-point by less of its range is no new goal."""


@dataclass(frozen=True, config=STRICT)
class CrispConfig:
    """Topics of a Cartesian controller; the defaults are CRISP's."""

    target_topic: str = "/target_pose"
    """Where the controller takes its set-point (PoseStamped)."""
    pose_topic: str = "/current_pose"
    """Where it publishes the pose of the tcp (PoseStamped)."""
    twist_topic: str = ""
    """Where it publishes the twist of the tcp (TwistStamped), e.g. `/current_twist`; none: differences of poses."""
    twist_frame: Literal["", "tcp", "base"] = ""
    """In whose axes that twist is, where its header names no frame."""
    wrench_topic: str = ""
    """Where a sensor or an estimate publishes what the environment exerts on the tool (WrenchStamped); none: it is not
    measured."""
    wrench_frame: Literal["", "tcp", "base"] = ""
    """In whose axes that wrench is, where its header names no frame; its torque is about the tcp."""
    sensor_frame: str = ""
    """Name of the sensor's own frame in the header of the wrench, if it is neither the tcp's nor the base's; none: its
    pose is that of `/tf_static`."""
    sensor_pose: tuple[Real, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """Pose of `sensor_frame` in the frame of the tcp, x y z [m] roll pitch yaw [rad]."""
    pose_frame: str = ""
    """Name of the arm's base in the controller's headers; none: the frame of its first pose."""
    tool_frame: str = ""
    """Name of the tcp in the controller's headers, e.g. `fr3_hand_tcp`."""
    joints_topic: str = "/joint_states"
    """Where the joints' positions and velocities are (JointState)."""
    joint_names: tuple[str, ...] = ()
    """The arm's joints in order; none takes all that are named there, but for the gripper's."""
    gripper_topic: str = ""
    """Where the gripper takes its set-point (Float64MultiArray), e.g. `/gripper_position_controller/commands`."""
    gripper_action: str = ""
    """Instead: the action of the gripper's controller, e.g. `/gripper_controller/gripper_cmd`; needs `control_msgs`."""
    gripper_action_type: ActionType = "GripperCommand"
    """Its type, of `control_msgs/action`."""
    gripper_effort: NonNegativeReal = 0.0
    """Largest effort of the action's goals, as its controller counts it; 0: the controller's own."""
    gripper_state_topic: str = "/joint_states"
    """Where the gripper publishes its state (JointState)."""
    gripper_joint: str = ""
    """Name of the gripper's joint there."""
    gripper_closed: Real = 0.0
    """What its controller counts when closed."""
    gripper_opened: Real = 1.0
    """What its controller counts when open."""
    gripper_width: PositiveReal = 0.08
    """Distance between the open fingers [m]."""
    controller: str = ""
    """Name of the controller at the controller manager of ros2_control: while it is not active, the arm holds, and
    `robot/recover` activates it; needs `controller_manager_msgs`. None: its state is not asked for."""
    controller_manager: str = "/controller_manager"
    """Full name of the controller manager."""
    replaces: tuple[str, ...] = ()
    """Controllers that are deactivated when `controller` is activated: those that claim the same joints."""


class CartesianTopics:
    """The controller's topics, as an `ArmDriver`.

    Args:
        config: Names of the topics.
        host: The node whose publishers and subscriptions are used.

    Raises:
        ConfigError: if the host is no ROS node, the controller's topics are also ours, or half a gripper is named.
    """

    Config = CrispConfig
    only_in_robot_node = True
    Target: type[Any] = PoseStamped
    """Type of the messages that the controller takes."""

    def __init__(self, config: CrispConfig, host: DriverHost) -> None:
        if not isinstance(host, RobotNode):
            raise ConfigError("this driver works by ROS topics; run it in robot_node")
        self._node: RobotNode = host
        self._config, self._max_age = config, host.max_age
        self._gripper = GripperScale(config.gripper_closed, config.gripper_opened, config.gripper_width)
        self._check_names()
        self._receive: Receive = _discard
        self.joint_names: tuple[str, ...] = ()
        """The arm's joints, in the order in which they are reported; none before they have come."""
        self._pose: tuple[int, Pose] | None = None
        self._frames = ControllerFrames(
            host, config.pose_frame, config.tool_frame, config.sensor_frame, config.sensor_pose
        )
        self._twist = TwistFromPoses()
        self._target = self._publisher(self.Target, config.target_topic)
        self._sole = host.sole_writer(self._target.topic_name, host.get_name())
        self._grip = self._make_gripper()
        self._controller = (
            ManagedController(host, config.controller_manager, config.controller, config.replaces)
            if config.controller
            else None
        )
        self._listen(PoseStamped, config.pose_topic, self._receive_pose)
        if config.twist_topic:
            self._listen(TwistStamped, config.twist_topic, self._receive_twist)
        if config.wrench_topic:
            self._listen(WrenchStamped, config.wrench_topic, self._receive_wrench)
        self._listen(JointState, config.joints_topic, self._receive_joints)
        if self._grip is not None:
            self._listen(JointState, config.gripper_state_topic, self._receive_gripper)

    # As an `ArmDriver`.

    @property
    def measures(self) -> frozenset[str]:
        """The motion, and the wrench and the gripper where they are named."""
        there = {"wrench": bool(self._config.wrench_topic), "gripper": self._grip is not None}
        return MOTION | {part for part, named in there.items() if named}

    def start(self, receive: Receive) -> None:
        """Call `receive` with every measurement from now on."""
        self._receive = receive

    def close(self) -> None:
        """Stop reporting, once the controller has what was sent last; publishers end with the node."""
        self._receive = _discard
        if self._node.context.ok():  # a publisher that ends takes with it what is still on its way
            self._target.wait_for_all_acked(DELIVERY)

    def move_to(self, T_base_target: Pose) -> None:
        """Publish a set-point, in the frame of the controller's poses."""
        self._target.publish(convert.pose_message(self._node.wall.now(), T_base_target, self._frames.base))

    def move_gripper(self, width: float) -> None:
        """Give the gripper a set-point."""
        if self._grip is not None:
            self._grip.move_to(self._gripper.value_of(width))

    def hold(self) -> None:
        """Make the pose that was just measured the set-point.

        Where that is too old, the set-point stays as it was: it leads the arm by little, and to go back to a pose of
        some time ago would be a motion.
        """
        if self._pose is not None and self._age() <= self._max_age:
            self.move_to(self._pose[1])

    def faults(self) -> list[str]:
        """Return why the arm would not obey now."""
        faults, topic = [], self._target.topic_name
        if self._pose is None:
            faults.append(
                f"no pose of the arm comes on {self._topic(self._config.pose_topic)}; is its controller active?"
            )
        elif (age := self._age()) > self._max_age:
            faults.append(f"the arm's newest pose is {age:.2f} s old; is its controller still active?")
        if not self._target.get_subscription_count():
            faults.append(f"no controller listens to {topic}; is it active, and in this ROS domain?")
        parts = (self._grip, self._controller)
        more = [self._sole.conflict(), *(part.fault() for part in parts if part is not None)]
        return [*faults, *(fault for fault in more if fault is not None)]

    def recover(self) -> None:
        """Have an inactive controller activated, holding; it takes a moment. Its other faults end where it runs."""
        if self._controller is not None and self._controller.fault() is not None:
            self.hold()
            self._controller.activate()

    # What the controller publishes.

    def _receive_pose(self, message: PoseStamped) -> None:
        stamp, pose = self._stamp(message), convert.pose_of(message.pose)
        if fault := measurement_fault(stamp, self._pose[0] if self._pose is not None else -1, (pose.position,)):
            raise SpecError(f"the pose's {fault}")
        self._frames.take_pose(message.header.frame_id, pose)
        self._pose = (stamp, pose)
        self._receive("pose", stamp, pose)
        if not self._config.twist_topic:
            self._receive("twist", stamp, self._twist.add(stamp, pose))

    def _receive_twist(self, message: TwistStamped) -> None:
        frame, stated = message.header.frame_id, self._config.twist_frame
        twist = self._frames.twist_in_base(frame, convert.twist_of(message), stated)
        self._receive("twist", self._stamp(message), twist)

    def _receive_wrench(self, message: WrenchStamped) -> None:
        frame, stated = message.header.frame_id, self._config.wrench_frame
        wrench = self._frames.wrench_at_tcp(frame, convert.wrench_of(message), stated)
        self._receive("wrench", self._stamp(message), wrench)

    def _receive_joints(self, message: JointState) -> None:
        config = self._config
        if config.gripper_joint and set(message.name) == {config.gripper_joint}:
            return  # of a gripper that publishes on the same topic
        joints = convert.joints_of(message, config.joint_names, config.gripper_joint)
        self.joint_names = config.joint_names or tuple(name for name in message.name if name != config.gripper_joint)
        self._receive("joints", self._stamp(message), joints)

    def _receive_gripper(self, message: JointState) -> None:
        name = self._config.gripper_joint
        if name not in message.name:
            return  # the arm's joints on the same topic
        value = message.position[list(message.name).index(name)]
        self._receive("gripper", self._stamp(message), self._gripper.width_of(value))

    # Odds and ends.

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

    def _make_gripper(self) -> Gripper | None:
        config = self._config
        if config.gripper_action:
            scale = self._gripper
            return GripperAction(
                self._node,
                config.gripper_action,
                config.gripper_action_type,
                joint=config.gripper_joint,
                effort=config.gripper_effort,
                resolution=RESOLUTION * abs(scale.opened - scale.closed),
            )
        return GripperTopic(self._node, config.gripper_topic) if config.gripper_topic else None

    def _check_names(self) -> None:
        config = self._config
        if config.gripper_topic and config.gripper_action:
            raise ConfigError(
                f"gripper_topic {config.gripper_topic} and gripper_action {config.gripper_action}: a gripper is "
                "commanded by one of them; leave the other out"
            )
        if bool(config.gripper_topic or config.gripper_action) != bool(config.gripper_joint):
            raise ConfigError(
                "a gripper needs gripper_joint and one of gripper_topic and gripper_action; leave all out if there is "
                "none"
            )
        ours = {self._topic(topic.name) for topic in OURS}
        for parameter in ("pose_topic", "twist_topic", "wrench_topic", "joints_topic"):
            name = getattr(config, parameter)
            if name and self._topic(name) in ours:
                raise ConfigError(
                    f"{parameter}: this node publishes on {self._topic(name)} itself; give our nodes a namespace, e.g. "
                    "`robot-rl up robot --namespace cell` or `--ros-args -r __ns:=/cell`"
                )


def _discard(part: str, stamp: int, value: Any) -> None:
    """Drop what is measured before `start` and after `close`."""
