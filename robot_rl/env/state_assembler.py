"""One robot state out of many streams: parts are joined by their stamps, and what is stale, late or broken is refused.

It knows stamps, ages and skews; it does not know where the parts come from.

What every measurement has to be, wherever it arrives: newer than the last, not from the future, and finite.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import RobotState
from robot_rl.errors import SpecError, StaleStateError
from robot_rl.geometry import Pose

MAX_AHEAD = 0.02
"""Largest distance of a stamp into the future [s], since two machines' clocks are never quite the same."""


def measurement_fault(
    stamp: int, newest: int, values: Iterable[np.ndarray], now: int | None = None, max_ahead: float = MAX_AHEAD
) -> str | None:
    """Return the fault of a measurement, to be read behind "its"; None without one.

    Args:
        stamp: When it was measured [ns].
        newest: Stamp of the one before [ns]; -1 if there was none.
        values: What was measured.
        now: Time [ns]; None where time is only known from what is measured.
        max_ahead: How far the stamp may lie in the future [s].
    """
    if stamp <= newest:
        return (
            "stamp does not rise: a clock was set back, or two nodes publish it; restart the nodes, or end one of them"
        )
    if now is not None and stamp - now > max_ahead * NS_PER_S:
        return "stamp lies in the future: the clocks of the machines differ"
    if not all(np.isfinite(array).all() for array in values):
        return "value has a NaN or an infinity"
    return None


ARM_PARTS = ("pose", "twist", "wrench", "joints")
"""Streams without which there is no state of an arm that measures forces."""
FORCELESS_PARTS = ("pose", "twist", "joints")
"""And of one that does not."""
TOOL = "tool"
"""Stream of what only some tools have: the distance between the fingers, and the peak of the force."""


class Joints(NamedTuple):
    """Positions [rad] and velocities [rad/s], shape (n,) each."""

    position: np.ndarray
    velocity: np.ndarray


class Tool(NamedTuple):
    """Distance between the fingers [m], and the largest filtered force since the message before [N]."""

    gripper_width: float
    peak_force: float


@dataclass(frozen=True)
class Freshness:
    """Limits of age, in seconds.

    Attributes:
        max_age: Oldest part of the arm's state that may be used.
        max_camera_age: Oldest frame that may be used.
        max_skew: Largest difference between the stamps of the pose and of the other parts of the arm's state.
        max_ahead: How far a stamp may lie in the future.
    """

    max_age: float = 0.2
    max_camera_age: float = 0.25
    max_skew: float = 0.05
    max_ahead: float = MAX_AHEAD


class _Stamped(NamedTuple):
    stamp: int
    value: Any


class StateAssembler:
    """Collector of the parts of a state as they arrive, from any thread; `read` joins them.

    The newest pose decides; of the twist, the wrench and the joints the sample nearest to it in time is taken, of each
    camera the newest frame.

    Args:
        cameras: Cameras whose frames belong to the state.
        freshness: What counts as fresh.
        history: Samples kept of each part of the arm's state.
        measured: Streams without which there is no state; without `wrench`, that of the state is None.
    """

    def __init__(
        self,
        cameras: Sequence[str] = (),
        freshness: Freshness | None = None,
        history: int = 16,
        measured: Sequence[str] = ARM_PARTS,
    ) -> None:
        self._freshness = freshness or Freshness()
        self._lock = threading.Lock()
        self._measured = tuple(measured)
        self._parts: dict[str, deque[_Stamped]] = {part: deque(maxlen=history) for part in (*measured, TOOL)}
        self._parts |= {camera_part(name): deque(maxlen=2) for name in cameras}
        self._cameras = tuple(cameras)
        self._peaks = {TOOL: 0.0, "wrench": 0.0}  # largest force since the last read, as the two of them saw it
        self._last_refusal: dict[str, str] = {}
        self.refusals: Counter[str] = Counter()
        """Number of refused messages, by part and reason."""
        self.received: Counter[str] = Counter()
        """Number of accepted messages, by part."""
        self.skews: deque[float] = deque(maxlen=1000)
        """Of the newest states: largest distance in time between the pose and any other part [s]."""

    def add(
        self, part: str, stamp: int, value: Any, now: int, filtered: Callable[[int, Any], Any] | None = None
    ) -> bool:
        """Take a message in; returns whether it did. What it refuses is counted, and named if its absence is felt.

        Args:
            part: `pose` (a `Pose`), `twist`, `wrench` (shape (6,)), `joints`, `tool`, or `camera_part(name)`.
            stamp: When it was measured [ns].
            value: What was measured.
            now: Time [ns].
            filtered: From the stamp and a value that is valid to the one that is kept; None: as it came.

        Raises:
            SpecError: if no such part is measured.
        """
        if part not in self._parts:
            raise SpecError(f"the {part} is not among what is measured: {', '.join(self._parts)}")
        with self._lock:
            values = () if part.startswith(_CAMERA) else _arrays(value)
            reason = measurement_fault(stamp, self.stamp(part), values, now, self._freshness.max_ahead)
            if reason is not None:
                self.refusals[f"{part}: {reason}"] += 1
                self._last_refusal[part] = reason
                return False
            if filtered is not None:
                value = filtered(stamp, value)
            self._parts[part].append(_Stamped(stamp, value))
            self.received[part] += 1
            if part in self._peaks:
                peak = value.peak_force if part == TOOL else float(np.linalg.norm(value[:3]))
                self._peaks[part] = max(self._peaks[part], peak)
            return True

    def last_refusal(self, part: str) -> str | None:
        """Why a message of a part was refused last; None if none was."""
        return self._last_refusal.get(part)

    def stamp(self, part: str = "pose") -> int:
        """Stamp of the newest sample of a part [ns]; -1 before the first."""
        samples = self._parts[part]
        return samples[-1].stamp if samples else -1

    def newest(self, part: str) -> Any:
        """Return the newest value of a part.

        Raises:
            StaleStateError: before the first.
        """
        return self._newest(part, 0, math.inf).value

    def complete_at(self, stamp: int) -> bool:
        """Return whether everything measured at this time [ns] has arrived, frames excepted."""
        with self._lock:
            return all(any(s.stamp == stamp for s in self._parts[part]) for part in (*self._measured, TOOL))

    def read(self, now: int) -> RobotState:
        """Return the newest state.

        Raises:
            StaleStateError: if a part has never arrived, is too old, or is too far from the pose in time.
        """
        limits = self._freshness
        with self._lock:
            pose = self._newest("pose", now, limits.max_age)
            parts = {part: self._nearest(part, pose.stamp, now) for part in self._measured if part != "pose"}
            frames = {name: self._newest(camera_part(name), now, limits.max_camera_age) for name in self._cameras}
            tool = self._parts[TOOL][-1].value if self._parts[TOOL] else None
            peak_force = self._peaks[TOOL if tool else "wrench"]  # a driver sees more samples than it publishes
            self._peaks = dict.fromkeys(self._peaks, 0.0)
        others = [abs(part.stamp - pose.stamp) for part in (*parts.values(), *frames.values())]
        self.skews.append(max(others) / NS_PER_S)
        joints: Joints = parts["joints"].value
        return RobotState(
            stamp=pose.stamp,
            T_base_tcp=Pose(pose.value.position.copy(), pose.value.quaternion.copy()),
            twist=parts["twist"].value.copy(),
            wrench=parts["wrench"].value.copy() if "wrench" in parts else None,
            joint_position=joints.position.copy(),
            joint_velocity=joints.velocity.copy(),
            gripper_width=tool.gripper_width if tool else 0.0,
            peak_force=peak_force,
            images={name: frame.value for name, frame in frames.items()},
        )

    def age(self, part: str, now: int) -> float:
        """Age of the newest sample of a part [s]; infinite before the first."""
        stamp = self.stamp(part)
        return (now - stamp) / NS_PER_S if stamp >= 0 else math.inf

    def _newest(self, part: str, now: int, max_age: float) -> _Stamped:
        samples = self._parts[part]
        age = (now - samples[-1].stamp) / NS_PER_S if samples else math.inf
        if not samples or age > max_age:
            raise self._stale(part, age, max_age)
        return samples[-1]

    def _nearest(self, part: str, stamp: int, now: int) -> _Stamped:
        self._newest(part, now, self._freshness.max_age)
        nearest = min(self._parts[part], key=lambda sample: abs(sample.stamp - stamp))
        skew = abs(nearest.stamp - stamp) / NS_PER_S
        if skew > self._freshness.max_skew:
            raise self._stale(f"{part} (measured apart from the pose)", skew, self._freshness.max_skew)
        return nearest

    def _stale(self, part: str, age: float, max_age: float) -> StaleStateError:
        refusal = self._last_refusal.get(part)
        count = sum(n for key, n in self.refusals.items() if key.startswith(f"{part}:"))
        hint = f"{count} messages were refused, the last because its {refusal}" if refusal else None
        return StaleStateError(age, max_age, what=part, hint=hint)


_CAMERA = "camera "


def camera_part(name: str) -> str:
    """Name of a camera's stream among the parts."""
    return f"{_CAMERA}{name}"


def skew_of_arms(states: Mapping[str, RobotState], largest: float) -> float:
    """Return the largest difference between the stamps of several arms' states [s].

    Args:
        states: Of each arm, by name.
        largest: How large it may be [s].

    Raises:
        StaleStateError: naming the arm that is late, if it is larger.
    """
    late = min(states, key=lambda name: states[name].stamp)
    skew = (max(state.stamp for state in states.values()) - states[late].stamp) / NS_PER_S
    if skew > largest:
        raise StaleStateError(skew, largest, what=f"state of the arm {late}, from the other arms on,")
    return skew


def checked_quaternion(q: np.ndarray) -> np.ndarray:
    """Return a quaternion of unit length, shape (4,): one off by rounding is scaled, any other refused.

    Raises:
        SpecError: naming it.
    """
    square = float(q @ q)
    if not abs(square - 1.0) < 1e-3:
        raise SpecError(f"quaternion {q.tolist()} is not of unit length")
    return q if abs(square - 1.0) < 1e-9 else q / math.sqrt(square)


def _arrays(value: Any) -> Sequence[Any]:
    if isinstance(value, Pose):
        return value.position, value.quaternion
    return value if isinstance(value, tuple) else (value,)
