"""Brings the arm to the pose at which an episode begins."""

from __future__ import annotations

import numpy as np

from robot_rl.clock import Clock
from robot_rl.env.robot_io import RobotIO
from robot_rl.env.task import StartPose
from robot_rl.env.travel import Travel
from robot_rl.errors import RobotLostError
from robot_rl.geometry import Pose

NEAR, ALIKE = 0.02, 0.1
"""How far from it a compliant arm may come to rest [m, rad]."""


def go_to_start(io: RobotIO, clock: Clock, start: StartPose) -> None:
    """Goes back along the tool, then straight to the start pose, and waits until the arm rests.

    Raises:
        RobotLostError: if the arm does not get there, or is not heard; it has been stopped.
    """
    travel = Travel(io, clock, start.speed, start.turn_rate)
    if start.retreat:
        travel.go(io.read().T_base_tcp @ Pose(np.array([0.0, 0.0, -start.retreat]), Pose.identity().quaternion))
    off = (start.pose.inverse() @ travel.go(start.pose).T_base_tcp).vector()
    away, turned = float(np.linalg.norm(off[:3])), float(np.linalg.norm(off[3:]))
    if away > NEAR or turned > ALIKE:
        io.stop()
        raise RobotLostError(
            f"the arm has come to rest {away * 1e3:.0f} mm and {np.degrees(turned):.0f} deg from its start pose; is "
            "something in its way, or the pose outside the limits of the safety node?"
        )
