"""`RobotIO` over topics: what stands on it cannot tell a real arm from a simulated one.

It turns messages into parts of the state and commands into messages; joining and judging them is the core's business.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from robot_rl.clock import NS_PER_S, Clock
from robot_rl.env.assembly import Freshness, StateAssembler, camera_part
from robot_rl.env.robot_io import Command, RobotState, check_command
from ros_nodes import convert, qos, topics
from ros_nodes.arrivals import Arrivals
from ros_nodes.node import RobotNode
from ros_nodes.topics import Topic

_PARTS: Mapping[str, tuple[Topic, Callable[[Any], Any]]] = {
    "pose": (topics.POSE, lambda message: convert.pose_of(message.pose)),
    "twist": (topics.TWIST, convert.twist_of),
    "wrench": (topics.WRENCH, convert.wrench_of),
    "joints": (topics.JOINTS, convert.joints_of),
    "tool": (topics.TOOL, convert.tool_of),
}


class RosRobotIO:
    """A robot behind topics.

    Args:
        node: Whose subscriptions and publishers; somebody else spins it.
        clock: The robot's clock.
        arrivals: Rung at every message.
        cameras: Cameras whose frames belong to the state.
        freshness: What counts as fresh.
        lockstep: Whether every sample has to arrive, because time waits for it.
    """

    def __init__(
        self,
        node: RobotNode,
        clock: Clock,
        arrivals: Arrivals,
        *,
        cameras: Sequence[str] = (),
        freshness: Freshness | None = None,
        lockstep: bool = False,
    ) -> None:
        self._clock, self._arrivals = clock, arrivals
        self.parts = StateAssembler(cameras, freshness)
        self._lock = threading.Lock()
        self._idle = False  # whether the newest message was a stop
        self.last_stamp = -1
        """Of the newest command or stop on the wire [ns]."""
        profile = qos.LOCKSTEP_READING if lockstep else qos.READING
        for part, (topic, value_of) in _PARTS.items():
            node.subscribe(topic, self._taker(part, value_of), profile)
        for camera in cameras:
            node.subscribe(topics.IMAGE, self._taker(camera_part(camera), convert.image_of), profile, camera=camera)
        self._commands = node.publisher(topics.COMMAND)

    def read(self) -> RobotState:
        """The newest state; its `peak_force` is of all samples since the previous `read`."""
        return self.parts.read(self._clock.now())

    def command(self, command: Command) -> None:
        """Sends a command.

        On the wire stamps rise: where one with a later stamp was sent before, it counts from then, and that much
        shorter.
        """
        check_command(command, self._clock.now())
        with self._lock:
            stamp = max(command.stamp, self.last_stamp + 1)
            if stamp != command.stamp:
                command = replace(command, stamp=stamp, ttl=command.ttl - (stamp - command.stamp) / NS_PER_S)
            self._commands.publish(convert.command_message(command))
            self.last_stamp, self._idle = stamp, False

    def stop(self) -> None:
        """Sends a stop, unless the last message was one."""
        with self._lock:
            if self._idle:
                return
            self.last_stamp = max(self._clock.now(), self.last_stamp + 1)
            self._commands.publish(convert.stop_message(self.last_stamp))
            self._idle = True

    def listeners(self) -> int:
        """How many nodes take the commands."""
        return int(self._commands.get_subscription_count())

    def _taker(self, part: str, value_of: Callable[[Any], Any]) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            self.parts.add(part, convert.stamp_of(message.header.stamp), value_of(message), self._clock.now())
            self._arrivals.ring()

        return take
