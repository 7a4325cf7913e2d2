"""Model of the Franka Research 3: published kinematics, inertias and limits, and primitive visual shapes.

Sources of the numbers: Franka Robotics' `franka_description` (FR3 joint limits, link inertials, hand inertials;
Apache-2.0) and the Denavit-Hartenberg table of the FR3 manual. Armature and joint friction are not published; the
values here are of the order that users identify on the arm. Links do not collide; only the tool has contact.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from robot_rl.arm.kinematics.fr3 import FLANGE_OFFSET, FLANGE_TURN, JOINTS
from sim.arm.place import add_motor
from sim.arm.shapes import DARK, WHITE, visual


@dataclass(frozen=True)
class Link:
    """A joint and the link that it moves.

    Attributes:
        position: Joint frame in the parent link's frame [m].
        roll: Rotation of the joint frame about the parent's x [rad]; the joint turns about its own z.
        limits: Joint range [rad].
        torque: Largest joint torque [Nm].
        velocity: Largest joint velocity [rad/s].
        mass: [kg].
        center_of_mass: In the joint frame [m].
        inertia: (xx, yy, zz, xy, xz, yz) about the centre of mass [kg m^2].
    """

    position: tuple[float, float, float]
    roll: float
    limits: tuple[float, float]
    torque: float
    velocity: float
    mass: float
    center_of_mass: tuple[float, float, float]
    inertia: tuple[float, float, float, float, float, float]


# fmt: off
DYNAMICS = (
    (87, 2.62, 2.927465, (4.128e-07, -0.0181251, -0.0386036),
     (0.0239273, 0.0224821, 0.0063501, 1.33179e-05, -0.000114048, -0.00199503)),
    (87, 2.62, 2.935537, (0.0031829, -0.0743222, 0.0088146),
     (0.0419389, 0.0251451, 0.0617021, 0.000202573, 0.00407778, -0.0042252)),
    (87, 2.62, 2.244901, (0.0407016, -0.0048201, -0.028973),
     (0.0241014, 0.0197405, 0.0190445, 0.00240469, -0.00285627, -0.00210421)),
    (87, 2.62, 2.615596, (-0.0459101, 0.0630493, -0.0085188),
     (0.03453, 0.0288816, 0.0412547, 0.0132255, 0.0101514, -0.000976283)),
    (12, 5.26, 2.327121, (-0.001604, 0.0292536, -0.0972966),
     (0.0516103, 0.0478773, 0.0164236, -0.00571517, -0.00356732, 0.010674)),
    (12, 4.18, 1.817038, (0.0597131, -0.0410295, -0.0101693),
     (0.00541233, 0.0140583, 0.0160808, 0.00619346, 0.00142193, -0.00131408)),
    (12, 5.26, 0.627143, (0.0045226, 0.0086262, -0.0161633),
     (0.000210924, 0.000177186, 5.99319e-05, -2.4333e-05, 4.56448e-05, 8.74407e-05)),
)
"""Of each link: the fields of `Link` from `torque` on."""
# fmt: on
FR3 = tuple(
    Link(position, roll, limits, torque, velocity, mass, center, inertia)
    for (position, roll, limits), (torque, velocity, mass, center, inertia) in zip(JOINTS, DYNAMICS, strict=True)
)

HOME = np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4])
"""Franka's ready pose [rad]."""
TORQUE_LIMITS = np.array([link.torque for link in FR3])
JOINT_LIMITS = np.array([link.limits for link in FR3])
ARM_DOF = len(FR3)
VISUAL_SHAPES = (
    (((0, 0, -0.19), (0, 0, 0), 0.06, WHITE),),
    (((0, 0, 0), (0, -0.13, 0), 0.06, WHITE),),
    (((0, 0, -0.12), (0, 0, 0), 0.055, WHITE), ((0, 0, 0), (0.0825, 0, 0), 0.055, WHITE)),
    (((0, 0, 0), (-0.0825, 0.0, 0), 0.055, WHITE), ((-0.0825, 0, 0), (-0.0825, 0.12, 0), 0.053, WHITE)),
    (((0, 0, -0.25), (0, 0.05, -0.1), 0.05, WHITE), ((0, 0.05, -0.1), (0, 0, 0), 0.05, WHITE)),
    (((0, 0, 0), (0.088, 0, 0), 0.048, WHITE),),
    (((0, 0, -0.01), (0, 0, 0.09), 0.042, DARK),),
)
"""Capsules to look at, in each joint frame: (from [m], to [m], radius [m], colour)."""


def add_fr3(spec: mujoco.MjSpec, base: mujoco.MjsBody) -> mujoco.MjsBody:
    """Add the arm to its base, with one torque motor per joint.

    Returns:
        The flange: a body whose frame is that of the Franka hand (z out of the flange, turned by -45 degrees, so that
        x points forward in the ready pose).
    """
    visual(base, mujoco.mjtGeom.mjGEOM_CYLINDER, DARK, size=(0.09, 0.07, 0), pos=(-0.02, 0, 0.07))
    body = base
    for number, (link, shapes, ready) in enumerate(zip(FR3, VISUAL_SHAPES, HOME, strict=True), start=1):
        body = body.add_body(name=f"link{number}", pos=link.position, quat=_roll(link.roll))
        body.mass, body.ipos, body.fullinertia, body.explicitinertial = (
            link.mass,
            link.center_of_mass,
            link.inertia,
            True,
        )
        joint = body.add_joint(name=f"joint{number}", type=mujoco.mjtJoint.mjJNT_HINGE, axis=(0, 0, 1))
        joint.range, joint.limited, joint.armature, joint.damping = link.limits, True, 0.1, (0.5, 0, 0)
        joint.springref = ready
        for start, end, radius, rgba in shapes:
            visual(body, mujoco.mjtGeom.mjGEOM_CAPSULE, rgba, fromto=(*start, *end), size=(radius, 0, 0))
        add_motor(spec, joint, number, link.torque)
    half = FLANGE_TURN / 2
    return body.add_body(name="flange", pos=(0, 0, FLANGE_OFFSET), quat=(np.cos(half), 0, 0, np.sin(half)))


def _roll(angle: float) -> tuple[float, float, float, float]:
    return float(np.cos(angle / 2)), float(np.sin(angle / 2)), 0.0, 0.0
