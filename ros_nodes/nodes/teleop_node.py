"""The operator's device as interventions: `TeleopMapping` over topics."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import TwistStamped
from sensor_msgs.msg import Joy

from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import TeleopNodeConfig
from robot_rl.teleop.remote_device import Intervention, TeleopMapping
from ros_nodes.interface import convert, topics
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run


class TeleopNode(RobotNode):
    """The node; its parameters are those of `TeleopNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("teleop_node", **options)
        self._mapping = TeleopMapping(declare(self, TeleopNodeConfig))
        refuse_changes(self, TeleopNodeConfig)
        self._interventions = self.publisher(topics.INTERVENTION)
        self._last: Intervention | None = None
        self.subscribe(topics.JOY, self._take_joy)
        self.subscribe(topics.TELEOP_TWIST, self._take_twist)

    def facts(self) -> Mapping[str, object]:
        """How long ago the device said something, and whether the operator is in control."""
        if self._last is None:
            return {"device": "silent"}
        return {"age_s": (self.wall.now() - self._last.stamp) / NS_PER_S, "in_control": self._last.active}

    def _take_joy(self, message: Joy) -> None:
        stamp = convert.stamp_of(message.header.stamp)
        self._publish(self._mapping.of_device(stamp, np.array(message.axes), tuple(message.buttons)))

    def _take_twist(self, message: TwistStamped) -> None:
        self._publish(self._mapping.of_twist(convert.stamp_of(message.header.stamp), convert.twist_of(message)))

    def _publish(self, intervention: Intervention) -> None:
        self._last = intervention
        self._interventions.publish(convert.intervention_message(intervention))


def main() -> int:
    """Runs the node."""
    return run(TeleopNode)


if __name__ == "__main__":
    sys.exit(main())
