"""The chain of the SO-101 arm as numbers.

Source: `so101_new_calib.urdf` of TheRobotStudio's SO-ARM100 repository (Apache-2.0), in which a joint is at zero in the
middle of its range, as LeRobot's calibration has it. Values below 1e-8 are taken as zero. The tcp is
`gripper_frame_link`: between the tips of the jaws, z pointing out of the gripper.
"""

from __future__ import annotations

import math

import numpy as np

from robot_rl.arm.kinematics.chain import Chain, Joint, quat_from_rpy
from robot_rl.geometry import Pose

_PI, _HALF = math.pi, 0.5 * math.pi
JOINTS = (  # name, xyz [m], rpy [rad], limits [rad]
    ("shoulder_pan", (0.0388353, 0.0, 0.0624), (_PI, 0.0, -_PI), (-1.91986, 1.91986)),
    ("shoulder_lift", (-0.0303992, -0.0182778, -0.0542), (-_HALF, -_HALF, 0.0), (-1.74533, 1.74533)),
    ("elbow_flex", (-0.11257, -0.028, 0.0), (0.0, 0.0, _HALF), (-1.69, 1.69)),
    ("wrist_flex", (-0.1349, 0.0052, 0.0), (0.0, 0.0, -_HALF), (-1.65806, 1.65806)),
    ("wrist_roll", (0.0, -0.0611, 0.0181), (_HALF, 0.0486795, _PI), (-2.74385, 2.84121)),
)
TOOL = ((-0.0079, -0.000218121, -0.0981274), (0.0, _PI, 0.0))
"""Pose of the tcp in the frame of the last joint: xyz [m], rpy [rad]."""


def so101_chain() -> Chain:
    """Return the chain of the SO-101; its joints have LeRobot's names."""
    joints = [
        Joint(name, Pose(np.array(xyz), quat_from_rpy(*rpy)), np.array([0.0, 0.0, 1.0]), *limits)
        for name, xyz, rpy, limits in JOINTS
    ]
    return Chain(joints, Pose(np.array(TOOL[0]), quat_from_rpy(*TOOL[1])))
