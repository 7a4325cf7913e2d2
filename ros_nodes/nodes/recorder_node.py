"""A bag (MCAP) of what passes on the topics, on request.

Episodes are not its business: `actor_node` writes each step that it plays into its run's store, which has one writer.
This node keeps what an episode leaves out, e.g. every pose and frame between two steps, the safety node's decisions,
and demonstrations that were made without an actor; `robot-rl data import` makes episodes of such a bag.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from std_srvs.srv import SetBool

from robot_rl.config.nodes import RecorderNodeConfig
from robot_rl.data.formats.rosbag_writer import BagWriter
from robot_rl.errors import PluginError, RobotRLError
from ros_nodes.bridge.bag_definitions import load_type, message_type
from ros_nodes.interface import topics
from ros_nodes.node.parameters import declare, refuse_changes
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.spin import run

DEPTH = 100
"""Messages of a topic that may wait for this node."""


class RecorderNode(RobotNode):
    """The node; its parameters are those of `RecorderNodeConfig`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("recorder_node", **options)
        self.config = declare(self, RecorderNodeConfig)
        refuse_changes(self, RecorderNodeConfig)
        self._bag: BagWriter | None = None
        self._heard: dict[str, Subscription | None] = {}  # None: cannot be recorded
        self.create_service(SetBool, topics.RECORD_SERVICE[0], self._on_record)
        if self.config.start:
            self._begin()
        self.timer(0.5, self._look)

    def destroy_node(self) -> None:
        """Completes the bag first."""
        self._end()
        super().destroy_node()

    def health(self) -> tuple[bytes, str]:
        """Whether it records, and keeps up."""
        if self._bag is None:
            return DiagnosticStatus.OK, "does not record"
        load = self._bag.load
        if load.error is not None:
            return DiagnosticStatus.ERROR, load.error
        if load.dropped:
            return DiagnosticStatus.WARN, f"the disk does not keep up: {load.dropped} messages are missing in the bag"
        return DiagnosticStatus.OK, f"records to {self._bag.path}"

    def facts(self) -> Mapping[str, object]:
        """How much there is in the bag."""
        if self._bag is None:
            return {}
        load = self._bag.load
        heard = sum(subscription is not None for subscription in self._heard.values())
        return {"topics": heard, "messages": load.messages, "bytes": load.bytes, "dropped": load.dropped}

    def _on_record(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        try:
            response.message = self._begin() if request.data else self._end()
            response.success = True
        except RobotRLError as error:
            response.message = str(error)
        return response

    def _begin(self) -> str:
        """Begins a bag, unless one is being written; what it is called."""
        if self._bag is None:
            name = datetime.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S.%f")[:-3]
            self._bag = BagWriter(Path(self.config.folder).expanduser() / f"{name}.mcap")
            self.get_logger().info(f"records to {self._bag.path}")
            self._look()
        return str(self._bag.path)

    def _end(self) -> str:
        """Completes the bag, if there is one; what it is called."""
        bag, self._bag = self._bag, None
        for subscription in self._heard.values():
            if subscription is not None:
                self.destroy_subscription(subscription)
        self._heard.clear()
        if bag is None:
            return "nothing was being recorded"
        load = bag.close()
        text = load.error or f"{bag.path}: {load.messages} messages, {load.dropped} dropped"
        if self.context.ok():
            self.get_logger().info(text)
        return text

    def _look(self) -> None:
        """Listen to what is new in the graph."""
        if self._bag is None:
            return
        wanted = {self.resolve_topic_name(name) for name in self.config.topics}
        unwanted = {self.resolve_topic_name(name) for name in self.config.without}
        for name, types in self.get_topic_names_and_types():
            if name in self._heard or name in unwanted or (wanted and name not in wanted):
                continue
            if not self.count_publishers(name):
                continue  # nothing to hear, and nothing that says how to listen
            self._heard[name] = self._listen(name, types)

    def _listen(self, name: str, types: list[str]) -> Subscription | None:
        try:
            if len(types) != 1:
                raise PluginError(f"it has several types: {', '.join(types)}")
            kind, python = message_type(types[0]), load_type(types[0])
        except PluginError as error:
            self.problem(f"{name} is not recorded: {error}")
            return None

        def take(message: bytes) -> None:
            if self._bag is not None:
                self._bag.add(name, kind, self.wall.now(), bytes(message))

        return self.create_subscription(python, name, take, self._profile(name), raw=True)

    def _profile(self, name: str) -> QoSProfile:
        """Return what every publisher of a topic can serve; earlier messages count, where they keep them."""
        offered = [info.qos_profile for info in self.get_publishers_info_by_topic(name)]
        reliable = all(profile.reliability == ReliabilityPolicy.RELIABLE for profile in offered)
        latched = all(profile.durability == DurabilityPolicy.TRANSIENT_LOCAL for profile in offered)
        return QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=DEPTH,
            reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
            durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
        )


def main() -> int:
    """Run the node."""
    return run(RecorderNode)


if __name__ == "__main__":
    sys.exit(main())
