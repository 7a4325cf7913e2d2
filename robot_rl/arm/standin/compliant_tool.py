"""The motion of a tool behind a compliant Cartesian controller, above a table: quasi-static, so stable at any rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate, rotvec_from_quat


@dataclass(frozen=True)
class Compliance:
    """What the tool follows and what it meets.

    Attributes:
        time_constant: Of the way to the set-point, a first-order lag [s].
        stiffness: Of the controller [N/m].
        table: Height of a horizontal table in the base frame [m].
        table_stiffness: Of the table [N/m].
    """

    time_constant: float
    stiffness: float
    table: float
    table_stiffness: float


class CompliantTool:
    """A tool that follows its set-point with a lag, and rests on the table where the set-point is below it.

    Args:
        start: First pose of the tcp in the base frame.
        compliance: How it gives way.
    """

    def __init__(self, start: Pose, compliance: Compliance) -> None:
        self.pose = self.set_point = start
        self._compliance = compliance

    def advance(self, seconds: float) -> None:
        """Move on for so long [s]."""
        goal, share = self._rest(), 1.0 - math.exp(-seconds / self._compliance.time_constant)
        turn = rotvec_from_quat(quat_multiply(goal.quaternion, quat_conjugate(self.pose.quaternion)))
        position = self.pose.position + share * (goal.position - self.pose.position)
        self.pose = Pose(position, quat_multiply(quat_from_rotvec(share * turn), self.pose.quaternion))

    def hold(self) -> None:
        """Make the present pose the set-point."""
        self.set_point = self.pose

    def push(self, way: np.ndarray) -> None:
        """Displace the tool and its set-point [m], shape (3,): it does not spring back."""
        self.pose = self.set_point = Pose(self.pose.position + way, self.pose.quaternion)

    def wrench(self) -> np.ndarray:
        """Return what the table exerts on the tool, in the axes of the tcp, [N, Nm]. Shape (6,)."""
        depth = max(0.0, self._compliance.table - float(self.pose.position[2]))
        force = np.array((0.0, 0.0, self._compliance.table_stiffness * depth))
        return np.concatenate([quat_rotate(quat_conjugate(self.pose.quaternion), force), np.zeros(3)])

    def _rest(self) -> Pose:
        """Return where it comes to rest: on the table, two springs in series share the penetration."""
        point, table = self.set_point, self._compliance.table
        if point.position[2] >= table:
            return point
        own, its = self._compliance.stiffness, self._compliance.table_stiffness
        height = (own * float(point.position[2]) + its * table) / (own + its)
        return Pose(np.array((point.position[0], point.position[1], height)), point.quaternion)
