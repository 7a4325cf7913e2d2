"""The rule that at most one node writes a topic: commands and measurements of an arm have one source each."""

from __future__ import annotations

from rclpy.node import Node


class SoleWriter:
    """A topic that only one node may write.

    The graph knows a writer from its discovery until its process has ended or, after a kill, until its lease runs out
    (3 s, `launch/config/fastdds.xml`).

    Args:
        node: The node that watches it, and may itself be the writer.
        topic: Its name.
    """

    def __init__(self, node: Node, topic: str) -> None:
        self._node = node
        self._topic = node.resolve_topic_name(topic)

    def conflict(self) -> str | None:
        """Name the nodes that write it if they are several, else None."""
        if self._node.count_publishers(self._topic) < 2:
            return None
        writers = sorted(info.node_name for info in self._node.get_publishers_info_by_topic(self._topic))
        return f"{len(writers)} nodes publish on {self._topic}: {', '.join(writers)}; only one may"
