"""The way of the tcp to its set-point: the twist that leads there, and the next pose on it."""

from __future__ import annotations

import math

import numpy as np

from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, rotvec_from_quat


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


def pose_towards(start: Pose, goal: Pose, distance: float, angle: float) -> Pose:
    """Return the pose on the straight way to the goal, at most so far away [m, rad]."""
    way = goal.position - start.position
    turn = rotvec_from_quat(quat_multiply(quat_conjugate(start.quaternion), goal.quaternion))
    share = min(1.0, distance / max(float(np.linalg.norm(way)), 1e-12))
    turned = min(1.0, angle / max(float(np.linalg.norm(turn)), 1e-12))
    if not math.isfinite(share + turned):
        return start
    return Pose(start.position + share * way, quat_multiply(start.quaternion, quat_from_rotvec(turned * turn)))


def _capped(vector: np.ndarray, largest: float) -> np.ndarray:
    return vector * min(1.0, largest / max(float(np.linalg.norm(vector)), 1e-12))
