"""The measurements of one arm as messages on its topics."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.publisher import Publisher
from std_msgs.msg import String

from robot_rl.env.robot_io import RobotState
from robot_rl.env.state_assembler import ARM_PARTS, Joints, Tool
from ros_nodes.interface import convert, topics
from ros_nodes.interface.topics import Topic


class ArmPublisher:
    """Publishes states of an arm that measures everything.

    Args:
        publisher: Makes the publisher of a topic.
        arm: Name of the arm; empty if there is no other.
    """

    def __init__(self, publisher: Callable[[Topic], Publisher], arm: str) -> None:
        self._pose, self._twist, self._wrench, self._joints, self._tool = (
            publisher(topic.of_arm(arm)) for topic in (*topics.MEASURED, topics.TOOL)
        )
        self._measures = publisher(topics.MEASURES.of_arm(arm))
        self._measures.publish(String(data=" ".join(ARM_PARTS)))

    def publish(self, state: RobotState, offset: int) -> None:
        """Publish a state of the arm, whose stamp is `offset` [ns] behind those of the messages."""
        stamp = state.stamp + offset
        self._pose.publish(convert.pose_message(stamp, state.T_base_tcp))
        self._twist.publish(convert.twist_message(stamp, state.twist))
        if state.wrench is not None:
            self._wrench.publish(convert.wrench_message(stamp, state.wrench))
        names = [f"joint{number}" for number in range(1, len(state.joint_position) + 1)]
        self._joints.publish(convert.joints_message(stamp, names, Joints(state.joint_position, state.joint_velocity)))
        self._tool.publish(convert.tool_message(stamp, Tool(state.gripper_width, state.peak_force)))
