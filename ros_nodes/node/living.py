"""How many processes of a node's name live, by DDS's liveliness of their `heartbeat/NODE`."""

from __future__ import annotations

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
        self.count = 0
        self._changed = time.monotonic()
        events = SubscriptionEventCallbacks(liveliness=self._take)
        node.create_subscription(Header, topic, on_beat, qos.watched(lease), event_callbacks=events)

    @property
    def settled(self) -> bool:
        """Whether the count has not changed for a while: writers are discovered one after the other."""
        return time.monotonic() - self._changed > SETTLE

    def _take(self, status: Any) -> None:
        self.count, self._changed = status.alive_count, time.monotonic()


def heartbeat_of(full_name: str) -> str:
    """Return the topic of the heartbeats of a node, e.g. `/cell/heartbeat/safety_node`."""
    place, _, name = full_name.rpartition("/")
    return f"{place}/{topics.HEARTBEAT.name.format(node=name)}"
