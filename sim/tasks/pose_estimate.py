"""Estimated pose of an object: in the base frame, with an error drawn at reset, and transformed to the tcp frame."""

from __future__ import annotations

import numpy as np

from robot_rl.env.robot_io import RobotState
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply, swing_twist_z
from sim.scene import DOWNWARD


def drawn_offset(rng: np.random.Generator, largest: float) -> tuple[float, float]:
    """Draw an error along x and y [m], uniform over a disc of radius `largest` [m]."""
    radius, angle = largest * np.sqrt(rng.uniform()), rng.uniform(0.0, 2.0 * np.pi)
    return float(radius * np.cos(angle)), float(radius * np.sin(angle))


def tilted(pose: Pose, angle: float, spread: float, seed: int) -> Pose:
    """Return a pose turned about a horizontal axis whose direction follows from the seed.

    Args:
        pose: The upright pose.
        angle: Smallest angle [rad].
        spread: How much larger the angle may be [rad]; drawn uniformly from the seed.
        seed: Of the episode.
    """
    rng = np.random.default_rng([seed, 8])
    direction = rng.uniform(0.0, 2.0 * np.pi)
    angle += rng.uniform(0.0, spread)
    turn = quat_from_rotvec(angle * np.array([np.cos(direction), np.sin(direction), 0.0]))
    return Pose(pose.position, quat_multiply(turn, pose.quaternion))


def seen_from_tcp(state: RobotState, T_base_object: Pose) -> np.ndarray:
    """Return position [m] and yaw [rad] of an object relative to the tcp, which points down. Shape (4,)."""
    T_tcp_object = state.T_base_tcp.inverse() @ T_base_object
    turn, _ = swing_twist_z(quat_multiply(T_tcp_object.quaternion, DOWNWARD))
    return np.append(T_tcp_object.position, turn)
