"""What was commanded and what was measured during a trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import RobotState
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, quat_rotate, rotvec_from_quat


@dataclass(frozen=True, eq=False)
class Trace:
    """Samples of a trial, n of them.

    Attributes:
        seconds: Times of measurement since the begin [s]. Shape (n,).
        target: Set-point in force, in the base frame [m]; NaN before the first. Shape (n, 3).
        position: Of the tcp in the base frame [m]. Shape (n, 3).
        turn: Rotation from the first sample [rad], as a vector in the base frame. Shape (n, 3).
        force: On the tool, in the axes of the base frame [N]; NaN if it is not measured. Shape (n, 3).
        width: Between the fingers [m]. Shape (n,).
    """

    seconds: np.ndarray
    target: np.ndarray
    position: np.ndarray
    turn: np.ndarray
    force: np.ndarray
    width: np.ndarray

    def window(self, begin: float, end: float = np.inf) -> np.ndarray:
        """Return which samples are from a window of time [s]; the nearest one if there is none. Shape (n,), bool."""
        inside = (self.seconds >= begin) & (self.seconds <= end)
        if not inside.any():
            inside[np.abs(self.seconds - begin).argmin()] = True
        return inside

    def mean_position(self, begin: float, end: float = np.inf) -> np.ndarray:
        """Return the mean position in a window of time [s]. Shape (3,)."""
        return self.position[self.window(begin, end)].mean(axis=0)

    def row(self) -> dict[str, Any]:
        """Return it as plain values, rounded to what sensors resolve."""
        return {
            "seconds": np.round(self.seconds, 4).tolist(),
            "target_m": np.round(self.target, 6).tolist(),
            "position_m": np.round(self.position, 6).tolist(),
            "turn_rad": np.round(self.turn, 5).tolist(),
            "force_n": np.round(self.force, 3).tolist(),
            "width_m": np.round(self.width, 5).tolist(),
        }


@dataclass
class TraceRecorder:
    """Collects samples; the same measurement is taken once.

    Attributes:
        begin: Time that counts as 0 [ns].
        target: The set-point in force.
    """

    begin: int
    target: Pose | None = None
    _states: list[tuple[RobotState, np.ndarray]] = field(default_factory=list)

    def add(self, state: RobotState) -> None:
        """Add a measurement, unless it is the one that was added last."""
        if not self._states or state.stamp > self._states[-1][0].stamp:
            target = np.full(3, np.nan) if self.target is None else self.target.position
            self._states.append((state, target))

    def trace(self) -> Trace:
        """Return what was collected."""
        states = [state for state, _ in self._states]
        first = states[0].T_base_tcp.quaternion
        turns = [rotvec_from_quat(quat_multiply(s.T_base_tcp.quaternion, quat_conjugate(first))) for s in states]
        return Trace(
            np.array([(state.stamp - self.begin) / NS_PER_S for state in states]),
            np.array([target for _, target in self._states]),
            np.array([state.T_base_tcp.position for state in states]),
            np.array(turns),
            np.array([force_in_base(state) for state in states]),
            np.array([state.gripper_width for state in states]),
        )


def force_in_base(state: RobotState) -> np.ndarray:
    """Return the force on the tool in the axes of the base frame [N]; NaN if it is not measured. Shape (3,)."""
    wrench: np.ndarray | None = state.wrench  # None for an arm without a sensor
    return np.full(3, np.nan) if wrench is None else quat_rotate(state.T_base_tcp.quaternion, wrench[:3])
