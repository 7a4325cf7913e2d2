"""Trajectory of the arm: stamped poses, interpolated at any time between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

_MAX_GAP = 0.1
"""Longest time between two poses that is interpolated [s]."""
_VELOCITY_WINDOW = 0.02
"""Velocities are differences over this time before and after [s]."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Poses of the tcp over time.

    Attributes:
        stamps: [ns], rising, shape (n,).
        poses: T_base_tcp at each.
    """

    stamps: np.ndarray
    poses: Sequence[Pose]

    def __post_init__(self) -> None:
        """Validate the stamps.

        Raises:
            CalibrationError: if there are too few, or they do not rise.
        """
        if len(self.stamps) < 2 or len(self.stamps) != len(self.poses):
            raise CalibrationError(f"{len(self.stamps)} stamps and {len(self.poses)} poses are no trajectory")
        if (np.diff(self.stamps) <= 0).any():
            raise CalibrationError("the stamps of the arm's poses do not rise; sort them, and use one clock")

    def at(self, stamp: float) -> tuple[Pose, np.ndarray] | None:
        """Return the interpolated pose and velocity at a time [ns].

        Returns:
            T_base_tcp and its twist in the tcp's own frame [m/s, rad/s], shape (6,); None outside the trajectory and
            in gaps of more than 0.1 s.
        """
        after = int(np.searchsorted(self.stamps, stamp, side="right"))
        if not 0 < after < len(self.stamps) or self.stamps[after] - self.stamps[after - 1] > _MAX_GAP * NS_PER_S:
            return None
        here = self._between(after, stamp)
        # Over a longer window: the difference of two close poses is mostly noise.
        window = _VELOCITY_WINDOW * NS_PER_S
        first = int(np.searchsorted(self.stamps, stamp - window, side="left"))
        last = min(int(np.searchsorted(self.stamps, stamp + window, side="right")), len(self.stamps) - 1)
        first, last = min(first, after - 1), max(last, after)
        change = self.poses[first].inverse() @ self.poses[last]
        to_here = here.inverse() @ self.poses[first]
        turned = Pose(np.zeros(3), to_here.quaternion) @ Pose.from_rotvec(change.position, change.rotvec)
        velocity = np.concatenate((turned.position, to_here.matrix @ change.rotvec))
        return here, velocity / ((self.stamps[last] - self.stamps[first]) / NS_PER_S)

    def _between(self, after: int, stamp: float) -> Pose:
        start, end = self.poses[after - 1], self.poses[after]
        part = (stamp - self.stamps[after - 1]) / (self.stamps[after] - self.stamps[after - 1])
        change = start.inverse() @ end
        return start @ Pose.from_rotvec(part * change.position, part * change.rotvec)
