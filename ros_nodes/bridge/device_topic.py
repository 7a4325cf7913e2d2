"""A device whose readings come by topic, as a `Device`: `sensor_msgs/Joy` or `geometry_msgs/TwistStamped`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import TwistStamped
from sensor_msgs.msg import Joy

from robot_rl.env.action_mapping import AXES
from robot_rl.errors import SpecError
from robot_rl.teleop.pushed import PushedDevice
from ros_nodes.interface import convert, topics
from ros_nodes.node.robot_node_base import RobotNode

KINDS = ("joy", "twist")
"""Devices that come by topic."""


class StampClock:
    """A clock that shows the newest stamp that it was given, so that replayed messages give the same actions."""

    def __init__(self) -> None:
        self._now = 0

    def now(self) -> int:
        """Return the newest stamp [ns]."""
        return self._now

    def sleep_until(self, stamp: int) -> None:
        """Set the clock to `stamp` [ns]; it never goes back."""
        self._now = max(self._now, stamp)


class DeviceTopic:
    """The subscription of a device.

    Args:
        node: Its subscription is used.
        kind: Of `KINDS`.
        clock: Set to the stamp of each message.
        full: Linear [m/s] and angular [rad/s] speed of a twist that count as full deflection.
        on_reading: Called with the device and the stamp [ns] of each reading; the device is another one when the number
            of axes or buttons has changed.
    """

    def __init__(
        self,
        node: RobotNode,
        kind: str,
        clock: StampClock,
        full: tuple[float, float],
        on_reading: Callable[[PushedDevice, int], None],
    ) -> None:
        self._kind, self._clock, self._on_reading = kind, clock, on_reading
        self._full = np.repeat(full, 3)
        self._device: PushedDevice | None = None
        if kind == "joy":
            node.subscribe(topics.JOY, self._receive_joy)
        else:
            node.subscribe(topics.TELEOP_TWIST, self._receive_twist)

    def _receive_joy(self, message: Joy) -> None:
        axes = [f"axis_{index}" for index in range(len(message.axes))]
        buttons = [f"button_{index}" for index in range(len(message.buttons))]
        self._push(message, axes, buttons, message.axes, [bool(button) for button in message.buttons])

    def _receive_twist(self, message: TwistStamped) -> None:
        self._push(message, AXES, (), np.clip(convert.twist_of(message) / self._full, -1.0, 1.0).tolist(), ())

    def _push(
        self, message: Any, axes: Sequence[str], buttons: Sequence[str], values: Sequence[float], held: Sequence[bool]
    ) -> None:
        stamp = convert.stamp_of(message.header.stamp)
        if stamp == 0:
            raise SpecError("it has no stamp, so its age is not known; have the device's driver set header.stamp")
        device = self._device
        if device is None or (len(device.axes), len(device.buttons)) != (len(axes), len(buttons)):
            self._device = device = PushedDevice(self._kind, axes, buttons, clock=self._clock)
        self._clock.sleep_until(stamp)
        device.push(values, held)
        self._on_reading(device, stamp)
