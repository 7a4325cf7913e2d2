"""Whether a required node is there, lives and works: by its own writer of `heartbeat/NODE`, not by a name in a message.

DDS itself announces that a process lives, from a thread of its own, and reports when it does no more (liveliness). A
busy machine delays that thread far less than a node's callbacks: `docs/benchmarks.md`, "Over ROS 2". The heartbeats
show that the callbacks are served, too; they may be late. A managed node that is not active says so in them.
"""

from __future__ import annotations

import time

from std_msgs.msg import Header

from ros_nodes.interface import topics
from ros_nodes.node.living import Living
from ros_nodes.node.robot_node_base import RobotNode


class RequiredNode:
    """Watches a node of the same namespace, or, e.g. as `left/robot_node`, of one below it.

    Args:
        node: The node that watches.
        name: Of the node that is watched.
        lease: Time without a sign of life of its process after which it counts as dead [s].
        timeout: Longest time between two heartbeats of a node that lives [s].
    """

    def __init__(self, node: RobotNode, name: str, lease: float, timeout: float) -> None:
        self._name, self._lease, self._timeout = name, lease, timeout
        place, below, own = name.rpartition("/")
        topic = f"{place}{below}{topics.HEARTBEAT.name.format(node=own)}"
        self._writer = node.sole_writer(topic, name)
        self._heard: float | None = None
        self._sign = self._well = own
        self.living = Living(node, topic, lease, self._take_beat)
        """How many processes of its name live, by DDS."""

    def fault(self) -> str | None:
        """Return why it cannot be relied on now; None if it can."""
        if (conflict := self._writer.conflict()) is not None:
            return conflict
        missing = f"no heartbeat of the required node {self._name}"
        if self._heard is None:
            return f"{missing} yet"
        silence = time.monotonic() - self._heard
        # DDS may miss that a process is there again, so a heartbeat counts as a sign of life, too.
        if not self.living.count and silence > self._lease:
            return f"{missing} for {silence:.2f} s: its process has ended or stands still"
        if silence > self._timeout:
            return f"{missing} for {silence:.2f} s, but its process lives: is it stuck?"
        return None if self._sign == self._well else self._sign

    def _take_beat(self, message: Header) -> None:
        self._heard, self._sign = time.monotonic(), message.frame_id
