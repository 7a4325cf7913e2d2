"""ROS's own time, for nodes with `use_sim_time`: what a simulator or `ros2 bag play --clock` publishes on `/clock`."""

from __future__ import annotations

import time

from rclpy.node import Node

from robot_rl.clock import NS_PER_S

POLL = 0.001
"""How often a sleeper looks whether its time has come [s]."""


class RosTime:
    """A `Clock` that follows `/clock`, and stands still where that is set back: a command would live until then again.

    Args:
        node: Has the parameter `use_sim_time`, and receives `/clock` while it is spun.
    """

    def __init__(self, node: Node) -> None:
        self._clock = node.get_clock()
        self._newest, self._changed = 0, time.monotonic()

    def now(self) -> int:
        """Return the time [ns]; 0 before the first message."""
        now = int(self._clock.now().nanoseconds)
        if now > self._newest:
            self._newest, self._changed = now, time.monotonic()
        return self._newest

    def sleep_until(self, stamp: int) -> None:
        """Sleep until `stamp` [ns], however long that takes."""
        while self.now() < stamp:
            time.sleep(POLL)

    def fault(self, limit: float) -> str | None:
        """Return why nothing can be timed by it, e.g. that it has stood still for more than `limit` [s]; else None."""
        if self.now() == 0:
            return "use_sim_time is true, but nothing has come on /clock; start what publishes it, or set it to false"
        still = time.monotonic() - self._changed
        if still <= limit:
            return None
        back = (self._newest - int(self._clock.now().nanoseconds)) / NS_PER_S
        why = (
            f"/clock was set back and is {back:.2f} s behind; restart the nodes" if back else "nothing comes on /clock"
        )
        return f"simulated time has stood still for {still:.2f} s: {why}"
