"""The operator's device as interventions: `DeviceOperator`, with the same maps as in one process, over topics."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.subscription import Subscription
from sensor_msgs.msg import JoyFeedback
from std_msgs.msg import String

from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import TeleopNodeConfig
from robot_rl.teleop.device import Device, Rumbles
from robot_rl.teleop.listing import open_devices
from robot_rl.teleop.mapping import DeviceMap, find_map
from ros_nodes.bridge.device_topic import KINDS, DeviceTopic, StampClock
from ros_nodes.bridge.ros_supervision import RosSupervision
from ros_nodes.bridge.ros_teleop import RosTeleoperation
from ros_nodes.interface import convert, qos, topics
from ros_nodes.interface.task_messages import TaskHead, from_text
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run

RATE = 100.0
"""How often a device of this machine is read [Hz]."""


class TeleopNode(RobotNode):
    """The node; its parameters are those of `TeleopNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("teleop_node", **options)
        self.config = config = declare(self, TeleopNodeConfig)
        refuse_changes(self, TeleopNodeConfig)
        self._supervision = RosSupervision(self, None, self.problem)
        self._clock = StampClock()
        self._head: TaskHead | None = None
        self._tools: dict[str, PoseStamped] = {}  # by arm; a single one has no name
        self._poses: list[Subscription] = []
        self._device: Device | None = None
        self._teleoperation: RosTeleoperation | None = None
        self.subscribe(topics.HEAD, self._receive_head)
        if config.device in KINDS:
            full = (config.twist_speed, config.twist_turn_rate)
            DeviceTopic(self, config.device, self._clock, full, self._receive_reading)
        else:
            (self._device,) = open_devices([config.device])
            self.timer(1.0 / RATE, self._poll)
        self._map = _map_of(config, self._device)
        self._feedback = self.publisher(topics.JOY_FEEDBACK) if config.device == "joy" else None
        self.subscribe(topics.CALL, self._receive_call)

    def destroy_node(self) -> None:
        """Close the device first."""
        if self._device is not None:
            self._device.close()
        super().destroy_node()

    def facts(self) -> Mapping[str, object]:
        """Return the age of the newest intervention, and whether the operator is in control."""
        last = self._teleoperation.last if self._teleoperation is not None else None
        if last is None:
            return {"device": "silent"}
        return {"age_s": (self.wall.now() - last.stamp) / NS_PER_S, "in_control": last.active}

    def _receive_head(self, message: String) -> None:
        head = from_text(TaskHead, message.data)
        if self._head is None or head.spec != self._head.spec:
            self._head = head
            self._end()
            for subscription in self._poses:
                self.destroy_subscription(subscription)
            self._tools.clear()
            self._poses = [
                self.subscribe(topics.POSE.of_arm(arm), partial(self._tools.__setitem__, arm), qos.READING)
                for arm in head.spec.each
            ]

    def _receive_call(self, message: String) -> None:
        """Have the device shake, whatever kind it is, when the policy begins to need help."""
        if message.data and self._feedback is not None:
            self._feedback.publish(JoyFeedback(type=JoyFeedback.TYPE_RUMBLE, intensity=1.0))
        elif message.data and isinstance(self._device, Rumbles):
            self._device.rumble()

    def _receive_reading(self, device: Device, stamp: int) -> None:
        if device is not self._device:
            self._device = device
            self._end()
        self._publish(stamp)

    def _poll(self) -> None:
        now = self.wall.now()
        self._clock.sleep_until(now)
        self._supervision.insist()
        self._publish(now)

    def _publish(self, stamp: int) -> None:
        if self._head is None or self._device is None or len(self._tools) < len(self._poses):
            return  # there is no arm yet
        if self._teleoperation is None:
            self._teleoperation = RosTeleoperation(
                self,
                self._head.spec,
                (self._device, self._map),
                self._supervision,
                self._clock,
                arm=self.config.arm_name,
                on_chosen=lambda arm: self.get_logger().info(f"the {arm} arm is led from now on"),
            )
        tools = {arm: convert.pose_of(message.pose) for arm, message in self._tools.items()}
        self._teleoperation.send(stamp, self._teleoperation.act(tools))

    def _end(self) -> None:
        """End the teleoperation of another task or device."""
        if self._teleoperation is not None:
            self._teleoperation.close()
            self._teleoperation = None


def _map_of(config: TeleopNodeConfig, device: Device | None) -> DeviceMap:
    mapping = find_map(config.map or (config.device if device is None else device.kind))
    return replace(mapping, engage=config.engage) if config.engage else mapping


def main() -> int:
    """Run the node."""
    return run(TeleopNode)


if __name__ == "__main__":
    sys.exit(main())
