"""The chains of Universal Robots' arms as numbers, for views: each arm's own calibration differs by millimetres.

Source: Universal Robots, "DH parameters for calculations of kinematics and dynamics".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from robot_rl.arm.kinematics.chain import Chain, Joint, quat_from_rpy
from robot_rl.geometry import Pose

_HALF, _TURNS = 0.5 * math.pi, 2.0 * math.pi
NAMES = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
ALPHA = (_HALF, 0.0, 0.0, _HALF, -_HALF, 0.0)
"""Twist of each link [rad]."""


class Lengths(NamedTuple):
    """What differs between the models [m]: `a2`, `a3`, `d1`, `d4`, `d5` and `d6` of their Denavit-Hartenberg table."""

    a2: float
    a3: float
    d1: float
    d4: float
    d5: float
    d6: float


MODELS: Mapping[str, Lengths] = {
    "ur3": Lengths(-0.24365, -0.21325, 0.1519, 0.11235, 0.08535, 0.0819),
    "ur3e": Lengths(-0.24355, -0.2132, 0.15185, 0.13105, 0.08535, 0.0921),
    "ur5": Lengths(-0.425, -0.39225, 0.089159, 0.10915, 0.09465, 0.0823),
    "ur5e": Lengths(-0.425, -0.3922, 0.1625, 0.1333, 0.0997, 0.0996),
    "ur10": Lengths(-0.612, -0.5723, 0.1273, 0.163941, 0.1157, 0.0922),
    "ur10e": Lengths(-0.6127, -0.57155, 0.1807, 0.17415, 0.11985, 0.11655),
    "ur16e": Lengths(-0.4784, -0.36, 0.1807, 0.17415, 0.11985, 0.11655),
    "ur20": Lengths(-0.862, -0.7287, 0.2363, 0.201, 0.1593, 0.1543),
    "ur30": Lengths(-0.637, -0.5037, 0.2363, 0.201, 0.1593, 0.1543),
}
"""By model, as the driver `ur` names them."""


def ur_chain(model: str) -> Chain:
    """Return the chain from the controller's frame `Base` to the flange of a model of `MODELS`."""
    a2, a3, d1, d4, d5, d6 = MODELS[model]
    a, d = (0.0, a2, a3, 0.0, 0.0, 0.0), (d1, 0.0, 0.0, d4, d5, d6)
    # a joint turns about z before its link: so the link before it is the way to its frame
    ways = [
        Pose(np.array([along, 0.0, up]), quat_from_rpy(twist, 0.0, 0.0))
        for along, up, twist in zip(a, d, ALPHA, strict=True)
    ]
    origins = [Pose.identity(), *ways[:-1]]
    joints = [
        Joint(name, origin, np.array([0.0, 0.0, 1.0]), -_TURNS, _TURNS)
        for name, origin in zip(NAMES, origins, strict=True)
    ]
    return Chain(joints, ways[-1])
