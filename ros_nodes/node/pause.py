"""A process that stood still, e.g. in a debugger or while memory was swapped, makes itself known to the others again.

After a pause that is longer than the lease of its participant, other processes have forgotten a node, and know its
publishers again soon, but not its name: ROS sends the names once (`ros_discovery_info`), when something changes. So
something is changed.
"""

from __future__ import annotations

import time

from rclpy.node import Node
from std_msgs.msg import Empty

PAUSED = 1.0
"""A gap between two ticks from which on it was a pause [s]; they are due every 0.1 s."""
ANNOUNCE_AFTER = (0.2, 1.0, 2.0, 4.0, 8.0)
"""Times after a pause at which the node is announced [s]: the others discover it again within about a second."""


class PauseWatch:
    """Notices pauses of the process by the gap between two ticks.

    Args:
        node: What is announced again.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._last = time.monotonic()
        self._due: list[float] = []

    def tick(self) -> float:
        """Note that the process runs; to be called often. Return the length of the pause that has just ended, or 0."""
        now = time.monotonic()
        gap, self._last = now - self._last, now
        paused = gap if gap > PAUSED else 0.0
        if paused:
            self._due = [now + delay for delay in ANNOUNCE_AFTER]
        if self._due and now >= self._due[0]:
            self._due.pop(0)
            self._announce()
        return paused

    def _announce(self) -> None:
        """Have ROS send the names of this process again: a publisher that comes and goes is a change."""
        self._node.destroy_publisher(self._node.create_publisher(Empty, "~/announce", 1))
