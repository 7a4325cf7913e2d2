"""The chain of the Franka Research 3 as numbers.

Source: the Denavit-Hartenberg table of the FR3 manual, and the joint limits of Franka Robotics' `franka_description`
(Apache-2.0).
"""

from __future__ import annotations

import math

import numpy as np

from robot_rl.arm.kinematics.chain import Chain, Joint, quat_from_rpy
from robot_rl.geometry import Pose

_HALF = 0.5 * math.pi
JOINTS = (
    ((0.0, 0.0, 0.333), 0.0, (-2.7437, 2.7437)),
    ((0.0, 0.0, 0.0), -_HALF, (-1.7837, 1.7837)),
    ((0.0, -0.316, 0.0), _HALF, (-2.9007, 2.9007)),
    ((0.0825, 0.0, 0.0), _HALF, (-3.0421, -0.1518)),
    ((-0.0825, 0.384, 0.0), -_HALF, (-2.8065, 2.8065)),
    ((0.0, 0.0, 0.0), _HALF, (0.5445, 4.5169)),
    ((0.088, 0.0, 0.0), _HALF, (-3.0159, 3.0159)),
)
"""Of each joint: its frame in that of the joint before, as position [m] and turn about x [rad]; its limits [rad]."""
FLANGE_OFFSET = 0.107
"""From the last joint to the flange along z [m]."""
FLANGE_TURN = -0.25 * math.pi
"""Of the flange about that z [rad]: its frame is that of the Franka hand, whose x points forward in the ready pose."""


def fr3_chain() -> Chain:
    """Return the chain from the base to the flange; its joints are joint1 to joint7."""
    joints = [
        Joint(f"joint{number}", Pose(np.array(xyz), quat_from_rpy(roll, 0.0, 0.0)), np.array([0.0, 0.0, 1.0]), *limits)
        for number, (xyz, roll, limits) in enumerate(JOINTS, start=1)
    ]
    return Chain(joints, Pose(np.array([0.0, 0.0, FLANGE_OFFSET]), quat_from_rpy(0.0, 0.0, FLANGE_TURN)))
