"""How many processes of a node's name live, by DDS's liveliness of their `heartbeat/NODE`."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from std_msgs.msg import Header

from ros_nodes.interface import qos, topics

LEASE = 0.25
"""Time without a sign of life after which a process counts as dead [s], where nothing else is said."""
SETTLE = 1.0
"""Time without a change after which a count is relied on [s]."""
NEVER_THE_SAME = 1e-6
"""By how much the leases of two readers of a process differ [s]: of those with one lease, Fast DDS tells only the first
that a writer lives."""
_readers = itertools.cycle(range(1000))


class Living:
    """Counts the living writers of a heartbeat.

    Args:
        node: The node that counts.
        topic: Of the heartbeats; relative names are in its namespace.
        lease: Time without a sign of life after which a process counts as dead [s].
        on_beat: Called with each heartbeat.
    """

    def __init__(
        self, node: Node, topic: str, lease: float = LEASE, on_beat: Callable[[Header], None] = lambda _: None
    ) -> None:
        self._node, self._topic, self._lease, self._on_beat = node, topic, lease, on_beat
        self._listen()

    @property
    def settled(self) -> bool:
        """Whether the count has not changed for a while: writers are discovered one after the other."""
        return time.monotonic() - self._changed > SETTLE

    def _listen(self) -> None:
        self.count, self._changed = 0, time.monotonic()
        profile = qos.watched(self._lease + next(_readers) * NEVER_THE_SAME)
        events = SubscriptionEventCallbacks(liveliness=self._take)
        self._reader = self._node.create_subscription(
            Header, self._topic, self._take_beat, profile, event_callbacks=events
        )

    def _take(self, status: Any) -> None:
        self.count, self._changed = status.alive_count, time.monotonic()

    def _take_beat(self, message: Header) -> None:
        if self.count == 0 and self.settled:  # DDS lost a sign of life that came while it made the reader: a new one
            self._node.destroy_subscription(self._reader)
            self._listen()
        self._on_beat(message)


def heartbeat_of(full_name: str) -> str:
    """Return the topic of the heartbeats of a node, e.g. `/cell/heartbeat/safety_node`."""
    place, _, name = full_name.rpartition("/")
    return f"{place}/{topics.HEARTBEAT.name.format(node=name)}"
