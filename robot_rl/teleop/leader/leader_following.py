"""From the poses of a leader arm and of the tool to the axes of a device; and when the leader leads.

The leader leads only after its tool was where the arm's tool is, and it is moved there: otherwise the arm would jump to
it, or a leader that lies on the table would take control from the policy. It lets go when it rests and the arm has
arrived, or when the arm cannot follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, rotvec_from_quat

ALIGNED, ALIGNED_TURN = 0.03, 0.35
"""Distance of the two tools within which the leader may take over [m, rad]."""
LOST = 0.2
"""Distance at which it lets go, since the arm does not follow [m]."""
FULL, FULL_TURN = 0.02, 0.15
"""Distance that is full deflection [m, rad]."""
MOVING = 0.15
"""Speed of a joint of the leader above which it is being moved [rad/s]."""
ARRIVED = 0.004
"""Distance at which the arm has arrived [m]."""
REST = 0.5
"""Time at rest after which it lets go [s]."""


class LeaderStage(StrEnum):
    """What the leader does."""

    APART = "apart"
    ALIGNED = "aligned"
    LEADING = "leading"


@dataclass(frozen=True, eq=False)
class LeaderView:
    """What a leader wants at one time.

    Attributes:
        stage: What it does.
        axes: Deflections x, y, z, roll, pitch, yaw in the axes of the base, in [-1, 1]; zero unless it leads.
        distance: Between the two tools [m].
        angle: Between them [rad].
    """

    stage: LeaderStage
    axes: np.ndarray
    distance: float
    angle: float


class LeaderFollowing:
    """Decides when a leader leads."""

    def __init__(self) -> None:
        self._leads = False
        self._rests_since: int | None = None

    def view(self, leader: Pose, tool: Pose, speed: float, now: int) -> LeaderView:
        """Return what the leader wants.

        Args:
            leader: Pose of the leader's tool in its base frame.
            tool: Pose of the arm's tool in its base frame.
            speed: Largest speed of a joint of the leader [rad/s].
            now: Time [ns].
        """
        way = leader.position - tool.position
        turn = rotvec_from_quat(quat_multiply(leader.quaternion, quat_conjugate(tool.quaternion)))
        distance, angle = float(np.linalg.norm(way)), float(np.linalg.norm(turn))
        is_aligned = distance <= ALIGNED and angle <= ALIGNED_TURN
        is_moved = speed > MOVING
        if self._leads:
            self._leads = distance <= LOST and not self._has_rested(is_moved or distance > ARRIVED, now)
        elif is_aligned and is_moved:
            self._leads, self._rests_since = True, None
        if not self._leads:
            return LeaderView(LeaderStage.ALIGNED if is_aligned else LeaderStage.APART, np.zeros(6), distance, angle)
        axes = np.concatenate((_bounded(way / FULL), _bounded(turn / FULL_TURN)))
        return LeaderView(LeaderStage.LEADING, axes, distance, angle)

    def _has_rested(self, is_busy: bool, now: int) -> bool:
        if is_busy:
            self._rests_since = None
            return False
        self._rests_since = now if self._rests_since is None else self._rests_since
        return (now - self._rests_since) / NS_PER_S >= REST


def _bounded(vector: np.ndarray) -> np.ndarray:
    """Return a vector of at most unit length, in its direction."""
    return vector / max(1.0, math.sqrt(float(vector @ vector)))
