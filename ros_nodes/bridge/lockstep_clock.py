"""A clock that stands still until somebody sleeps on it, as in the simulation in one process, but over topics."""

from __future__ import annotations

from collections.abc import Callable

from std_msgs.msg import String

from robot_rl.errors import GraphError
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import Advance, Advanced, from_text, to_message
from ros_nodes.node.robot_node_base import RobotNode

PATIENCE = 30.0
"""How long the simulation may take to advance, or its messages to arrive [s]."""


class LockstepClock:
    """Requests the simulation to advance, and returns when everything that it then measured has arrived.

    Args:
        node: Whose subscription and publisher.
        arrivals: Rung at every message.
    """

    def __init__(self, node: RobotNode, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._at = Advanced(now=0, stamp=-1)
        self.measured: list[Callable[[int], bool]] = []
        """Each returns whether what was measured at a stamp [ns] has arrived."""
        self.answered: list[Callable[[int], bool]] = []
        """Each returns whether what follows from it, e.g. the operator's move, has arrived; a reset waits for none."""
        self.frames = True
        """Whether the cameras take a picture whenever time has advanced."""
        self.last_command: Callable[[], int] = lambda: -1
        """Returns the stamp of the newest command [ns], which has to reach the simulation before time goes on."""
        node.subscribe(topics.ADVANCED, self._take)
        self._advance = node.publisher(topics.ADVANCE)

    def now(self) -> int:
        """Return the simulated time [ns]."""
        return self._at.now

    def sleep_until(self, stamp: int) -> None:
        """Lets time advance to `stamp` [ns].

        Raises:
            GraphError: if it does not.
        """
        if stamp <= self._at.now:
            return
        self._advance.publish(to_message(Advance(until=stamp, after=self.last_command(), frames=self.frames)))
        self._wait(lambda: self._at.now >= stamp, [*self.measured, *self.answered])

    def wait_for_stamp(self, stamp: int) -> None:
        """Wait until the newest measurement is of `stamp` [ns] and has arrived as a whole.

        Raises:
            GraphError: if that does not happen.
        """
        self._wait(lambda: self._at.stamp >= stamp, self.measured)

    def _wait(self, done: Callable[[], bool], arrived: list[Callable[[int], bool]]) -> None:
        if not self._arrivals.wait_for(lambda: done() and all(a(self._at.stamp) for a in arrived), PATIENCE):
            raise GraphError(
                f"the simulation did not advance within {PATIENCE:g} s, or its messages are lost; are sim_node, "
                "safety_node and teleop_node still running?"
            )

    def _take(self, message: String) -> None:
        self._at = from_text(Advanced, message.data)
        self._arrivals.ring()
