"""`RobotIO` over topics: what stands on it cannot tell a real arm from a simulated one.

It adds commands, as messages, to what is read.
"""

from __future__ import annotations

import math
import threading
from typing import Any

from robot_rl.clock import Clock
from robot_rl.env.robot_io import Command, check_command, not_before
from robot_rl.env.state_assembler import Freshness
from ros_nodes.bridge.ros_state import RosReadings
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, topics
from ros_nodes.node.robot_node_base import RobotNode


def freshness_of(*, lockstep: bool, **limits: float) -> Freshness:
    """Return how fresh measurements have to be; in lockstep their time comes before the reader's."""
    return Freshness(**limits, max_ahead=math.inf if lockstep else Freshness.max_ahead)


class RosRobotIO(RosReadings):
    """A robot behind topics.

    Args:
        node: Whose subscriptions and publishers; somebody else spins it.
        clock: The robot's clock.
        arrivals: Rung at every message.
        options: As for `RosReadings`.
    """

    def __init__(self, node: RobotNode, clock: Clock, arrivals: Arrivals, **options: Any) -> None:
        super().__init__(node, clock, arrivals, **options)
        self._lock = threading.Lock()
        self._idle = False  # whether the newest message was a stop
        self.last_stamp = -1
        """Of the newest command or stop on the wire [ns]."""
        self._names = tuple(name for name in self.arms if name)
        self._commands = node.publisher(topics.COMMAND.of_arms(self._names))

    def command(self, command: Command) -> None:
        """Send a command; on the wire stamps rise."""
        check_command(command, self._clock.now(), self._names)
        with self._lock:
            command = not_before(command, self.last_stamp)
            self._commands.publish(convert.command_message(command))
            self.last_stamp, self._idle = command.stamp, False

    def stop(self) -> None:
        """Send a stop, unless the last message was one."""
        with self._lock:
            if self._idle:
                return
            self.last_stamp = max(self._clock.now(), self.last_stamp + 1)
            self._commands.publish(convert.stop_message(self.last_stamp))
            self._idle = True

    def listeners(self) -> int:
        """How many nodes take the commands."""
        return int(self._commands.get_subscription_count())
