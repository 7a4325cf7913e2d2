"""The device of an operator, published as interventions: the device map is applied here, once."""

from __future__ import annotations

import numpy as np
from std_msgs.msg import String

from robot_rl.clock import Clock
from robot_rl.env.supervision import NEXT_ARM
from robot_rl.env.task import TaskSpec
from robot_rl.errors import GraphError
from robot_rl.geometry import Pose
from robot_rl.teleop.device import Device
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.intervention import Intervention
from robot_rl.teleop.mapping import DeviceMap
from ros_nodes.bridge.ros_supervision import RosSupervision
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import Estimates, from_text
from ros_nodes.node.robot_node_base import RobotNode


class RosTeleoperation:
    """A `DeviceOperator` whose actions go out on `intervention`, and whose requests go to the task and the actor.

    Args:
        node: Its publisher and subscription are used.
        spec: The task.
        hand: The device, and its map.
        supervision: Holds the arm when the device is lost, and receives the requests of its buttons.
        clock: Clock of smoothing and of the time at rest; None takes the machine's.

    Raises:
        DeviceError: if the map does not fit the device.
    """

    def __init__(
        self,
        node: RobotNode,
        spec: TaskSpec,
        hand: tuple[Device, DeviceMap],
        supervision: RosSupervision,
        clock: Clock | None = None,
    ) -> None:
        self._node, self._spec, self._supervision = node, spec, supervision
        self._operator = DeviceOperator([hand], spec, supervision, on_press=self._request, clock=clock)
        self._publisher = node.publisher(topics.INTERVENTION)
        self._episode: int | None = None
        self.last: Intervention | None = None
        """What was published last."""
        self._subscription = node.subscribe(topics.ESTIMATES, self._receive_estimates)

    def act(self, T_base_tcp: Pose) -> np.ndarray | None:
        """Read the device and map it; None while the policy is left in control.

        Args:
            T_base_tcp: Pose of the tool.
        """
        return self._operator.act_at(T_base_tcp)

    def watch(self) -> None:
        """Poll the device where it may not lead, so that its loss is noticed."""
        self._operator.watch()

    def send(self, stamp: int, action: np.ndarray | None) -> None:
        """Publish an action that was read at `stamp` [ns]."""
        self.last = Intervention.of_action(stamp, action, self._spec)
        self._publisher.publish(convert.intervention_message(self.last))

    def close(self) -> None:
        """End the publisher and the subscription; the device stays open."""
        self._node.destroy_publisher(self._publisher)
        self._node.destroy_subscription(self._subscription)

    def _receive_estimates(self, message: String) -> None:
        episode = from_text(Estimates, message.data).episode
        if episode != self._episode:
            self._episode = episode
            self._operator.reset(0, demonstrate=False)  # who demonstrates is decided where the episode is played

    def _request(self, role: str) -> None:
        """Pass on what a button requests; report where nobody receives it."""
        try:
            if role == "start":
                self._supervision.ready()
            elif role == "discard":
                self._supervision.cut("discarded by the operator")
            elif role == NEXT_ARM:
                self._node.problem(f"{self._spec.name} has one arm: no other one can be led")
            else:
                self._supervision.decide(role == "success")
        except GraphError as error:
            self._node.problem(f"button {role}: {error}")
