"""An arm that is commanded by twists, as MoveIt Servo takes them; its pose and joints come as a Cartesian controller's.

While there is a set-point, the twist towards it is sent at a steady rate. Without twists Servo halts the arm after its
own `incoming_command_timeout`, so the arm also halts when this program dies.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import TwistStamped
from pydantic import Field
from pydantic.dataclasses import dataclass

from robot_rl.arm.driver import DriverHost
from robot_rl.arm.set_point.pose_servo import twist_towards
from robot_rl.config.field_types import STRICT
from robot_rl.geometry import Pose
from ros_nodes.drivers.crisp import CartesianTopics, CrispConfig
from ros_nodes.interface import convert


@dataclass(frozen=True, config=STRICT)
class ServoConfig(CrispConfig):
    """Topics of MoveIt Servo, and of what publishes the pose of the tcp."""

    target_topic: str = "/servo_node/delta_twist_cmds"
    """Where Servo takes twists (TwistStamped), in m/s and rad/s: its parameter `command_in_type` is `speed_units`."""
    twist_rate: Annotated[float, Field(ge=20, le=500)] = 50.0
    """Rate of the twists [Hz]."""
    twist_gain: Annotated[float, Field(gt=0, le=20)] = 5.0
    """Speed of the tcp per distance to its set-point [1/s]; lower it where the arm overshoots."""
    twist_speed: Annotated[float, Field(gt=0, le=1)] = 0.25
    """Largest linear speed that is commanded [m/s]."""
    twist_turn_rate: Annotated[float, Field(gt=0, le=3)] = 1.0
    """Largest angular speed that is commanded [rad/s]."""


class ServoTopics(CartesianTopics):
    """MoveIt Servo, as an `ArmDriver`.

    Args:
        config: Names of the topics, and the law by which a set-point becomes twists.
        host: The node whose publishers and subscriptions are used.

    Raises:
        ConfigError: as for `CartesianTopics`.
    """

    Config = ServoConfig
    Target: type[Any] = TwistStamped

    def __init__(self, config: ServoConfig, host: DriverHost) -> None:
        super().__init__(config, host)
        self._law = (config.twist_gain, config.twist_speed, config.twist_turn_rate)
        self._set_point: Pose | None = None
        self._timer = self._node.timer(1.0 / config.twist_rate, self._send)

    def move_to(self, T_base_target: Pose) -> None:
        """Set the set-point that twists lead to from now on."""
        self._set_point = T_base_target

    def hold(self) -> None:
        """Command no motion, and then nothing more."""
        self._set_point = None
        if self._pose is not None:  # before that, the name of its frame is not known, and nothing was commanded
            self._publish(np.zeros(6))

    def close(self) -> None:
        """Hold, and stop reporting."""
        self._timer.cancel()
        self.hold()
        super().close()

    def _send(self) -> None:
        set_point, measured = self._set_point, self._pose
        if set_point is None or measured is None:
            return
        if self._age() > self._max_age:
            self.hold()  # a twist from a pose of some time ago may lead anywhere
            return
        self._publish(twist_towards(measured[1], set_point, *self._law))

    def _publish(self, twist: np.ndarray) -> None:
        self._target.publish(convert.twist_message(self._node.wall.now(), twist, self._frames.base))
