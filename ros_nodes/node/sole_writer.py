"""The rule that at most one node writes a topic: commands and measurements of an arm have one source each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rclpy.node import Node
from rclpy.topic_endpoint_info import TopicEndpointInfo

from ros_nodes.node.living import Living, heartbeat_of

PARTICIPANT = 12
"""Bytes at the start of a writer's identity (GUID) that are those of its process."""
_UNKNOWN = "_NODE_NAME_UNKNOWN_"
"""What the graph calls the node of a writer that was discovered before it; the name comes a moment later."""
_NAMELESS = "a node whose name is not known yet"


class SoleWriter:
    """A topic that only one node may write.

    The graph knows a writer from its discovery until its process has ended or, after a kill, until its lease has run
    out (20 s). So a node of ours that was killed and started again is there twice. The writers of one name count as one
    where all have heartbeats, as our nodes have, and only one of those lives.

    Args:
        node: The node that watches it, and may itself be the writer.
        topic: Its name.
        expected: Name of the only node that may be it, in the same namespace or, with a slash at the front, in another;
            None allows any.
    """

    def __init__(self, node: Node, topic: str, expected: str | None = None) -> None:
        self._node = node
        self._topic = node.resolve_topic_name(topic)
        self._living: dict[str, Living] = {}
        own = node.get_namespace().rstrip("/")
        self.expected = f"{own}/{expected}" if expected is not None and not expected.startswith("/") else expected
        """Full name of the node that may write it; None if any may."""

    def conflict(self) -> str | None:
        """Name the nodes that write it if they are several, or not the one that may; else None."""
        count = self._node.count_publishers(self._topic)
        if count == 0 or (count == 1 and self.expected is None):
            return None
        writers: dict[str, list[bytes]] = defaultdict(list)
        for info in self._node.get_publishers_info_by_topic(self._topic):
            writers[_name(info)].append(bytes(info.endpoint_gid))
        known = [name for name in writers if name != _NAMELESS]
        if len(known) == 1:  # who was killed before its name was known never gets one: whether it lives, heartbeats say
            writers[known[0]] += writers.pop(_NAMELESS, [])
        if len(writers) > 1 or any(self._several(name, ids) for name, ids in writers.items()):
            count = sum(map(len, writers.values()))
            names = ", ".join(sorted(name.rpartition("/")[2] for name, ids in writers.items() for _ in ids))
            return f"{count} nodes publish on {self._topic}: {names}; only one may"
        for name in writers:
            if self.expected not in (None, name):
                return f"{name} publishes on {self._topic}; only {self.expected} may"
        return None

    def identity(self) -> frozenset[bytes]:
        """Return what tells the writers from others of the same name; it is empty if there are none."""
        return frozenset(bytes(info.endpoint_gid) for info in self._node.get_publishers_info_by_topic(self._topic))

    def _several(self, name: str, ids: Sequence[bytes]) -> bool:
        """Return whether more than one process of this name may live."""
        if len(ids) < 2:
            return False
        topic = heartbeat_of(name)
        if name not in self._living:
            self._living[name] = Living(self._node, topic)
        with_heartbeat = {bytes(i.endpoint_gid)[:PARTICIPANT] for i in self._node.get_publishers_info_by_topic(topic)}
        living = self._living[name]
        return not (living.settled and living.count == 1) or not {i[:PARTICIPANT] for i in ids} <= with_heartbeat


def _name(info: TopicEndpointInfo) -> str:
    if info.node_name == _UNKNOWN:
        return _NAMELESS
    return f"{info.node_namespace.rstrip('/')}/{info.node_name}"
