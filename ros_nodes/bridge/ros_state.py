"""The state of a robot from topics, for whoever acts on it or only shows it; the core joins and judges its parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from robot_rl.clock import Clock
from robot_rl.env.robot_io import RobotState
from robot_rl.env.state_assembler import Freshness, StateAssembler, camera_part
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, qos, topics
from ros_nodes.interface.topics import Topic
from ros_nodes.node.robot_node_base import RobotNode

FRAME_SLACK = 0.005
"""How much later than the first ones of an episode frames may come, and still be seen in their period [s]."""
LONGEST_WAIT = 0.5
"""For frames [s]."""

_PARTS: Mapping[str, tuple[Topic, Callable[[Any], Any]]] = {
    "pose": (topics.POSE, lambda message: convert.pose_of(message.pose)),
    "twist": (topics.TWIST, convert.twist_of),
    "wrench": (topics.WRENCH, convert.wrench_of),
    "joints": (topics.JOINTS, convert.joints_of),
    "tool": (topics.TOOL, convert.tool_of),
}


class RosReadings:
    """A robot's topics.

    Args:
        node: Whose subscriptions; somebody else spins it.
        clock: The robot's clock.
        arrivals: Rung at every message.
        cameras: Cameras whose frames belong to the state.
        freshness: What counts as fresh.
        lockstep: Whether every sample has to arrive, because time waits for it.
    """

    def __init__(
        self,
        node: RobotNode,
        clock: Clock,
        arrivals: Arrivals,
        *,
        cameras: Sequence[str] = (),
        freshness: Freshness | None = None,
        lockstep: bool = False,
    ) -> None:
        self._clock, self._arrivals = clock, arrivals
        self._frames = () if lockstep else tuple(camera_part(name) for name in cameras)
        self.parts = StateAssembler(cameras, freshness)
        profile = qos.LOCKSTEP_READING if lockstep else qos.READING
        for part, (topic, value_of) in _PARTS.items():
            node.subscribe(topic, self._taker(part, value_of), profile)
        for camera in cameras:
            node.subscribe(topics.IMAGE, self._taker(camera_part(camera), convert.image_of), profile, camera=camera)

    def read(self) -> RobotState:
        """Return the newest state; its `peak_force` is of all samples since the previous `read`."""
        return self.parts.read(self._clock.now())

    def await_frames(self) -> None:
        """Wait until a moment after the newest frames; where none come, the next `read` reports what is missing."""
        if self._frames:
            before = {part: self.parts.stamp(part) for part in self._frames}
            self._arrivals.wait_for(
                lambda: all(self.parts.stamp(p) > stamp for p, stamp in before.items()), LONGEST_WAIT
            )
            time.sleep(FRAME_SLACK)

    def _taker(self, part: str, value_of: Callable[[Any], Any]) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            self.parts.add(part, convert.stamp_of(message.header.stamp), value_of(message), self._clock.now())
            self._arrivals.ring()

        return take
