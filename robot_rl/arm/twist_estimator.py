"""The twist of the tcp from its poses, for controllers that publish none."""

from __future__ import annotations

from collections import deque

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, rotvec_from_quat


class TwistFromPoses:
    """Difference of two poses over the time between them.

    The result is the mean twist of the window, so it lags by half of it; a longer window is less noisy.

    Args:
        window: Time between the two poses, at least [s].
        gap: A longer time between two poses in a row starts anew [s].
    """

    def __init__(self, window: float = 0.03, gap: float = 0.2) -> None:
        self._window, self._gap = round(window * NS_PER_S), round(gap * NS_PER_S)
        self._poses: deque[tuple[int, Pose]] = deque()

    def add(self, stamp: int, pose: Pose) -> np.ndarray:
        """Add the pose of a time [ns] and return the twist, in the axes of the poses. Shape (6,), [m/s, rad/s].

        While there is but one pose, the arm counts as at rest.
        """
        poses = self._poses
        if poses and not 0 < stamp - poses[-1][0] <= self._gap:
            poses.clear()
        poses.append((stamp, pose))
        while len(poses) > 2 and stamp - poses[1][0] >= self._window:
            poses.popleft()
        before, start = poses[0]
        if stamp == before:
            return np.zeros(6)
        turn = quat_multiply(pose.quaternion, quat_conjugate(start.quaternion))
        way = np.concatenate((pose.position - start.position, rotvec_from_quat(turn)))
        return way * (NS_PER_S / (stamp - before))
