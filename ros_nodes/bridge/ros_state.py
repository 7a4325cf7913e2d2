"""The state of a robot from topics, for whoever acts on it or only shows it; the core joins and judges its parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from robot_rl.clock import Clock
from robot_rl.env.robot_io import RobotState
from robot_rl.env.state_assembler import ARM_PARTS, TOOL, Freshness, StateAssembler, camera_part, skew_of_arms
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
        arms: Names of several arms; none: there is one.

    Attributes:
        arms: The parts of each arm's state by its name, empty for a single one.
        parts: Those of the first arm, and all frames.
        skew: Largest difference between the stamps of several arms' states so far [s].
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
        arms: Sequence[str] = (),
    ) -> None:
        self._clock, self._arrivals = clock, arrivals
        self._frames = () if lockstep else tuple(camera_part(name) for name in cameras)
        self._max_skew = (freshness or Freshness()).max_skew
        names = tuple(arms) or ("",)
        self.arms = {name: StateAssembler(cameras if name == names[0] else (), freshness) for name in names}
        self.parts, self.skew = self.arms[names[0]], 0.0
        profile = qos.LOCKSTEP_READING if lockstep else qos.READING
        for arm, parts in self.arms.items():
            for part, (topic, value_of) in _PARTS.items():
                node.subscribe(topic.of_arm(arm), self._taker(parts, part, value_of), profile)
        for camera in cameras:
            take = self._taker(self.parts, camera_part(camera), convert.image_of)
            node.subscribe(topics.IMAGE, take, profile, camera=camera)

    def read(self) -> RobotState:
        """Return the newest state; its `peak_force` is of all samples since the previous `read`.

        Raises:
            StaleStateError: if a part is too old, or one of several arms is too far from another in time.
        """
        now = self._clock.now()
        if "" in self.arms:
            return self.parts.read(now)
        states = {name: parts.read(now) for name, parts in self.arms.items()}
        self.skew = max(self.skew, skew_of_arms(states, self._max_skew))
        frames = next(iter(states.values())).images
        return RobotState.of_arms({name: replace(state, images={}) for name, state in states.items()}, frames)

    def complete_at(self, stamp: int) -> bool:
        """Return whether everything measured of the arms at this time [ns] has arrived, frames excepted."""
        return all(parts.complete_at(stamp) for parts in self.arms.values())

    def missing(self) -> list[str]:
        """Return what of the arms has never come, e.g. `pose of the arm`."""
        every = ((name, part, parts) for name, parts in self.arms.items() for part in (*ARM_PARTS, TOOL))
        return [f"{part} of the {f'{name} ' * bool(name)}arm" for name, part, parts in every if parts.stamp(part) < 0]

    def await_frames(self) -> None:
        """Wait until a moment after the newest frames; where none come, the next `read` reports what is missing."""
        if self._frames:
            before = {part: self.parts.stamp(part) for part in self._frames}
            self._arrivals.wait_for(
                lambda: all(self.parts.stamp(p) > stamp for p, stamp in before.items()), LONGEST_WAIT
            )
            time.sleep(FRAME_SLACK)

    def _taker(self, parts: StateAssembler, part: str, value_of: Callable[[Any], Any]) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            parts.add(part, convert.stamp_of(message.header.stamp), value_of(message), self._clock.now())
            self._arrivals.ring()

        return take
