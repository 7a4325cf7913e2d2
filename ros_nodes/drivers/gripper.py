"""The ways to command a gripper of ros2_control: a topic of set-points, or an action of `control_msgs`."""

from __future__ import annotations

import importlib
from typing import Any, Literal, Protocol

from rclpy.action import ActionClient
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from robot_rl.errors import ConfigError
from ros_nodes.interface import qos
from ros_nodes.node.robot_node_base import RobotNode

ActionType = Literal["GripperCommand", "ParallelGripperCommand"]


class Gripper(Protocol):
    """What takes set-points, in the controller's own unit."""

    def move_to(self, value: float) -> None:
        """Set the set-point; return at once."""
        ...

    def fault(self) -> str | None:
        """Return why it would not obey now; None if it would."""
        ...


class GripperTopic:
    """A controller that takes set-points on a topic, e.g. `forward_command_controller`.

    Args:
        node: Whose publisher.
        name: Of the topic (Float64MultiArray).
    """

    def __init__(self, node: RobotNode, name: str) -> None:
        self._set_points = node.create_publisher(Float64MultiArray, name, qos.COMMAND)

    def move_to(self, value: float) -> None:
        """Publish the set-point."""
        self._set_points.publish(Float64MultiArray(data=[value]))

    def fault(self) -> str | None:
        """Return None: many drivers of grippers listen only now and then."""
        return None


class GripperAction:
    """A controller that takes goals, e.g. `position_controllers/GripperActionController`.

    A goal is sent when the set-point changes. How it ends is not looked at: a gripper that has grasped something
    stalls, which some controllers report as a failure.

    Args:
        node: Whose action client.
        name: Of the action.
        kind: Its type.
        joint: The gripper's joint.
        effort: Largest effort, as the controller counts it; 0: the controller's own.
        resolution: A change of the set-point that is smaller than this is none.

    Raises:
        ConfigError: if `control_msgs` is not installed.
    """

    def __init__(
        self, node: RobotNode, name: str, kind: ActionType, *, joint: str, effort: float, resolution: float
    ) -> None:
        try:
            self._type: Any = getattr(importlib.import_module("control_msgs.action"), kind)
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"gripper_action needs {kind} of the package control_msgs: install ros-$ROS_DISTRO-control-msgs, or "
                "name the topic of a gripper's controller instead (gripper_topic)"
            ) from error
        self._node, self._kind, self._joint, self._effort = node, kind, joint, effort
        self._resolution = resolution
        self._client: ActionClient[Any, Any, Any] = ActionClient(node, self._type, name)
        self._name = node.resolve_topic_name(name)
        self._wanted: float | None = None  # of the newest goal; None: it was not accepted

    def move_to(self, value: float) -> None:
        """Send a goal, unless the newest one is the same."""
        if self._wanted is not None and abs(value - self._wanted) < self._resolution:
            return
        if not self._client.server_is_ready():
            return  # `fault` says so
        self._wanted = value
        self._client.send_goal_async(self._goal(value)).add_done_callback(self._answered)

    def fault(self) -> str | None:
        """Return that there is no controller, if so."""
        if self._client.server_is_ready():
            return None
        return f"no gripper takes goals on {self._name} ({self._kind}); is its controller active?"

    def _goal(self, value: float) -> Any:
        goal = self._type.Goal()
        if self._kind == "GripperCommand":
            goal.command.position, goal.command.max_effort = value, self._effort
        else:
            effort = [self._effort] if self._effort else []
            goal.command = JointState(name=[self._joint], position=[value], effort=effort)
        return goal

    def _answered(self, future: Future[Any]) -> None:
        answer = future.result()
        if answer is None or not answer.accepted:
            self._wanted = None
            self._node.problem(f"the gripper has refused a goal on {self._name}; see the log of its controller")
