"""Where a task believes a thing to lie: a pose in the base frame, with an error drawn at reset, seen from the tcp."""

from __future__ import annotations

import numpy as np

from robot_rl.env.robot_io import RobotState
from robot_rl.geometry import Pose, quat_multiply, swing_twist_z
from sim.scene import DOWNWARD


def drawn_offset(rng: np.random.Generator, largest: float) -> tuple[float, float]:
    """An error along x and y [m], uniform over a disc of radius `largest` [m]."""
    radius, angle = largest * np.sqrt(rng.uniform()), rng.uniform(0.0, 2.0 * np.pi)
    return float(radius * np.cos(angle)), float(radius * np.sin(angle))


def seen_from_tcp(state: RobotState, T_base_thing: Pose) -> np.ndarray:
    """Position [m] of a thing in the tcp frame, and how far the tcp, pointing down, has to turn [rad]. Shape (4,)."""
    T_tcp_thing = state.T_base_tcp.inverse() @ T_base_thing
    turn, _ = swing_twist_z(quat_multiply(T_tcp_thing.quaternion, DOWNWARD))
    return np.append(T_tcp_thing.position, turn)
