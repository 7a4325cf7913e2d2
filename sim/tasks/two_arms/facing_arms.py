"""Two arms that face each other, 1.3 m apart along y."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import mujoco
import numpy as np

from robot_rl.env.task import ArmSpec
from robot_rl.geometry import Pose
from sim.arm.inverse_kinematics import solve_ik
from sim.scene import DOWNWARD

LEFT, RIGHT = "left", "right"
BASES = {
    LEFT: Pose(np.array([0.5, 0.65, 0.0]), np.array([np.sqrt(0.5), 0.0, 0.0, -np.sqrt(0.5)])),
    RIGHT: Pose(np.array([0.5, -0.65, 0.0]), np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])),
}
"""Where the arms stand, in the frame of the scene."""
SIDES = {LEFT: 1.0, RIGHT: -1.0}
"""On which side of the middle each stands, along y."""


def standing(arm: str, does: ArmSpec) -> ArmSpec:
    """Return what an arm does, at the base where it stands."""
    x, y, z = BASES[arm].position.tolist()
    w, i, j, k = BASES[arm].quaternion.tolist()
    return replace(does, base_position=(x, y, z), base_quaternion=(w, i, j, k))


def start_angles(
    starts: Mapping[str, np.ndarray], add_tool: Callable[..., object], file: str | None
) -> dict[str, np.ndarray]:
    """Return the joint angles of each arm at the start [rad], its tool downwards, found with a model of one arm.

    Args:
        starts: Positions of the tcps, in the frame of the scene [m].
        add_tool: Adds an arm with its tool to a scene.
        file: Of another kind of arm.
    """
    alone = mujoco.MjSpec()
    alone.compiler.degree = False
    add_tool(alone, arm=file)
    model, angles = alone.compile(), {}
    for name, start in starts.items():
        T_base_start = BASES[name].inverse() @ Pose(start, np.array([1.0, 0.0, 0.0, 0.0]))
        angles[name] = solve_ik(model, "tcp", T_base_start.position, DOWNWARD)
    return angles
