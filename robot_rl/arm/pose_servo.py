"""From a set-point of the tcp to the twist that leads there, for arms that are commanded by velocity."""

from __future__ import annotations

import numpy as np

from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, rotvec_from_quat


def twist_towards(pose: Pose, target: Pose, gain: float, speed: float, turn_rate: float) -> np.ndarray:
    """Return `gain` times the way that is left, with the speeds capped; the direction stays.

    Args:
        pose: Of the tcp, in some frame.
        target: Set-point of the tcp in the same frame.
        gain: Share of the way per second [1/s].
        speed: Largest linear speed [m/s].
        turn_rate: Largest angular speed [rad/s].

    Returns:
        Linear [m/s] and angular [rad/s] velocity of the tcp in the axes of that frame, shape (6,).
    """
    turn = rotvec_from_quat(quat_multiply(target.quaternion, quat_conjugate(pose.quaternion)))
    return np.concatenate((_capped(gain * (target.position - pose.position), speed), _capped(gain * turn, turn_rate)))


def _capped(vector: np.ndarray, largest: float) -> np.ndarray:
    return vector * min(1.0, largest / max(float(np.linalg.norm(vector)), 1e-12))
