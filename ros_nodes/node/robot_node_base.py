"""What all our nodes have in common: a configuration, a heartbeat, diagnostics, and time."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.clock import Clock as RosClock
from rclpy.clock import ClockType
from rclpy.exceptions import InvalidParameterTypeException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from rclpy.timer import Timer

from robot_rl.clock import Clock, WallClock
from robot_rl.errors import ConfigError, RobotRLError
from robot_rl.geometry import Pose
from ros_nodes.interface import qos, topics
from ros_nodes.interface.convert import header, time_message, transform_of
from ros_nodes.interface.framed_publisher import FramedPublisher
from ros_nodes.interface.frames import BASE, TCP, FrameNames
from ros_nodes.interface.topics import Topic
from ros_nodes.node.pause import PauseWatch
from ros_nodes.node.ros_time import RosTime
from ros_nodes.node.sole_writer import SoleWriter
from ros_nodes.node.transforms import FIXED, TFMessage, Transforms

HEARTBEAT_RATE = 10.0
"""[Hz]"""
TIME_LIMIT = 1.0
"""How long simulated time may stand still before the diagnostics report it [s]."""
MOST_PROBLEMS = 100
"""Texts that are counted."""
WARNING_PERIOD = 1.0
"""Between two reports of the same [s]."""
_FIGURE = re.compile(r"\d+(\.\d+)?")
LIMIT = "limit "
"""Beginning of the names of facts that are limits in force."""


class RobotNode(Node):
    """A node with a heartbeat and diagnostics.

    A subclass overrides `health` and `facts`.

    Args:
        name: Its name, unless a remapping changes it.
        options: What `rclpy.node.Node` takes, e.g. `context`.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._ros_time = RosTime(self) if self.get_parameter("use_sim_time").value else None
        self.wall: Clock = self._ros_time or WallClock()
        """The time of all stamps: that of `/clock` with `use_sim_time`, else since 1970."""
        self.frames = self._declare_frames()
        """Names of the frames in headers and transforms."""
        self.add_on_set_parameters_callback(_keep_time)
        self.problems: Counter[str] = Counter()
        self._warned: dict[str, float] = {}
        """How often what was refused or went wrong; shown in the diagnostics."""
        self._heartbeats = self.publisher(topics.HEARTBEAT, node=self.get_name())
        self._diagnostics = self.publisher(topics.DIAGNOSTICS)
        self._pause = PauseWatch(self)
        self.timer(1.0 / HEARTBEAT_RATE, self._beat)
        self.timer(1.0, self._diagnose)

    def publisher(self, topic: Topic, **names: str) -> Publisher:
        """Return a publisher of a topic of the table, in its frame."""
        name, frame = topic.name.format(**names), self.frames.named(topic.frame.format(**names))
        publisher: FramedPublisher = self.create_publisher(topic.type, name, topic.qos, publisher_class=FramedPublisher)
        publisher.frame = frame
        return publisher

    def sole_writer(self, topic: Topic | str, expected: str | None = None) -> SoleWriter:
        """Watch that at most one node writes a topic, of the table or by its name; with `expected`, that node."""
        return SoleWriter(self, topic if isinstance(topic, str) else topic.name, expected)

    def subscribe(
        self, topic: Topic, callback: Callable[[Any], None], profile: Any | None = None, **names: str
    ) -> Subscription:
        """Return a subscription; what it refuses is logged and counted.

        A message in another frame than the topic's is refused, and so is what raises a `RobotRLError` in the callback.

        Args:
            topic: Which.
            callback: Given each message.
            profile: Quality of service other than that of the table.
            names: What stands for `{camera}` and the like.
        """

        def guarded(message: Any) -> None:
            try:
                self.frames.check(topic.frame, message)
                callback(message)
            except RobotRLError as error:
                self.problem(f"{topic.name.format(**names)}: {error}")

        return self.create_subscription(topic.type, topic.name.format(**names), guarded, profile or topic.qos)

    def transforms(self) -> Transforms:
        """Return what publishes the frames of the arm for TF."""
        return Transforms(self, self.frames, self.wall)

    def read_fixed_transforms(self, take: Callable[[str, str, Pose], None]) -> bool:
        """Call `take` with parent, child and pose of each fixed transform of TF; return False without `tf2_msgs`."""
        if TFMessage is None:
            return False

        def receive(message: Any) -> None:
            for one in message.transforms:
                take(one.header.frame_id, one.child_frame_id, transform_of(one))

        self.subscribe(Topic(FIXED, TFMessage, qos.FIXED_TRANSFORMS, "", "", ""), receive)
        return True

    def timer(self, period: float, callback: Callable[[], None]) -> Timer:
        """Call back every `period` [s] of real time, whatever the simulated time does."""
        return self.create_timer(period, callback, clock=RosClock(clock_type=ClockType.STEADY_TIME))

    def time_fault(self, limit: float) -> str | None:
        """Return why nothing can be timed: simulated time has not come, or stood still for more than `limit` [s]."""
        return None if self._ros_time is None else self._ros_time.fault(limit)

    def problem(self, text: str) -> None:
        """Count what was refused or went wrong; report each text, whatever its figures, at most once a second."""
        if text in self.problems or len(self.problems) < MOST_PROBLEMS:
            self.problems[text] += 1
        kind, now = _FIGURE.sub("", text), time.monotonic()
        if now - self._warned.get(kind, -math.inf) >= WARNING_PERIOD:
            self._warned[kind] = now
            self.get_logger().warning(text)

    def given_parameters(self) -> dict[str, Any]:
        """Return the parameters that files, arguments or the constructor set, by name, declared or not."""
        return {name: parameter.value for name, parameter in self._parameter_overrides.items()}

    def health(self) -> tuple[bytes, str]:
        """Level (`DiagnosticStatus.OK` and so on) and a sentence."""
        return DiagnosticStatus.OK, "ok"

    def facts(self) -> Mapping[str, object]:
        """Figures for the diagnostics."""
        return {}

    def sign(self) -> str:
        """Return what its heartbeats carry in `frame_id`: its name while it works, else why it does not."""
        return self.get_name()

    def _declare_frames(self) -> FrameNames:
        """Declare the names of the frames as parameters that stay."""

        def declared(name: str, default: str, about: str) -> str:
            descriptor = ParameterDescriptor(description=f"{about} (text)", read_only=True)
            try:
                return str(self.declare_parameter(name, default, descriptor).value)
            except InvalidParameterTypeException as error:
                raise ConfigError(f"{name}: {error}; valid: text") from error

        return FrameNames(
            declared("base_frame", BASE, "name of the frame of the arm's base"),
            declared("tcp_frame", TCP, "name of the frame of the tcp, as it is measured"),
            declared("frame_prefix", "", "put before the names of all frames, e.g. left_ where two arms share TF"),
        )

    def _beat(self) -> None:
        if paused := self._pause.tick():
            self.problem(f"this process has stood still for {paused:.1f} s")
        self._heartbeats.publish(header(self.wall.now(), self.sign()))

    def _diagnose(self) -> None:
        level, message = self.health()
        if (fault := self.time_fault(TIME_LIMIT)) is not None:
            level, message = DiagnosticStatus.ERROR, fault
        facts = {**self.facts(), **{f"refused: {text[:120]}": n for text, n in self.problems.most_common(5)}}
        values = [KeyValue(key=key, value=_text(value)) for key, value in facts.items()]
        status = DiagnosticStatus(
            level=level, name=self.get_fully_qualified_name(), message=message, hardware_id="", values=values
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = time_message(self.wall.now())
        self._diagnostics.publish(array)


def is_neighbour(node: Node, full_name: str) -> bool:
    """Whether a node of that full name, e.g. `/left/sim_node`, is in the same namespace: part of the same robot."""
    return full_name.rpartition("/")[0] == node.get_namespace().rstrip("/")


def _keep_time(changes: list[Parameter[Any]]) -> SetParametersResult:
    if any(change.name == "use_sim_time" for change in changes):
        return SetParametersResult(successful=False, reason="use_sim_time counts from the start of a node")
    return SetParametersResult(successful=True)


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
