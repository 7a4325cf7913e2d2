"""A belt drive to be put together: an elastic belt, two pulleys, and the jaws by which arms carry the belt.

The belt is a ring of points with capsules between them. What holds them together is a soft constraint, not a spring:
points this light on springs this stiff would need a tenth of the physics step.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco
import numpy as np

from sim.arm.shapes import DARK, GREY, ORANGE, WHITE, visual
from sim.scene import drive_finger


class BeltShape(NamedTuple):
    """The belt: a round elastic cord, closed."""

    radius: float = 0.003
    length: float = 0.438
    """Of its axis, at rest [m]."""
    pieces: int = 60
    mass: float = 0.018
    armature: float = 0.003
    """Inertia without weight that is added to each point [kg].

    It slows the fastest vibration of a strand with tension T, 2 sqrt(T / (m l)) for points of mass m a length l apart:
    more than 2 over the physics step, and the belt shakes itself.
    """
    stiffness: float = 40.0
    """Tension over stretch [N]."""
    impedance: float = 0.98
    """Of the constraint on each piece, see `add_belt`."""
    damping: float = 0.05
    """Of the motion of each point [Ns/m]; without, the belt sounds like a string."""

    @property
    def piece(self) -> float:
        """Length of a piece at rest [m]."""
        return self.length / self.pieces


class PulleyShape(NamedTuple):
    """A pulley on a vertical axis: a hub between two flanges, and a cone on the upper one [m]."""

    hub: float = 0.025
    """Radius."""
    flange: float = 0.029
    """Radius."""
    rim: float = 0.033
    """Radius of the lower flange: an end that is let go of too low jumps against it."""
    groove: float = 0.009
    """Height between the flanges."""
    thickness: float = 0.002
    """Of a flange."""
    cone: float = 0.04
    """Height of the cone over its flange."""
    tip: float = 0.002
    """Radius of the cone at its top."""
    apart: float = 0.14
    """Distance of the axes of both pulleys."""
    height: float = 0.03
    """Of the middle of the groove over the plate."""


class JawShape(NamedTuple):
    """Two jaws, one above the other, that pinch the belt between them and let it slip out sideways [m]."""

    depth: float = 0.008
    """Half the length of a pad along the pull."""
    width: float = 0.011
    """Half the width of a pad: the whole turn of the belt's end lies in it."""
    thickness: float = 0.003
    """Of a pad."""
    travel: float = 0.006
    """Of each jaw, from closed on nothing."""
    stiffness: float = 8000.0
    """Of each jaw [N/m]; closed on the belt it presses by this times the belt's radius."""
    turn: float = 0.008
    """Radius of the turn of the belt's end in the jaws."""


BELT, PULLEY, JAW = BeltShape(), PulleyShape(), JawShape()
FIRM = {"condim": 3, "priority": 1, "solref": (0.004, 1.0), "solimp": (0.998, 0.9995, 0.0005, 0.5, 2.0)}
"""Contact of what the belt touches: its points are light."""
STEEL = {**FIRM, "contype": 0, "conaffinity": 3, "friction": (0.12, 0.005, 0.0001)}
"""Of the pulleys and the plate: with the jaws, whose `contype` is 1, and with the belt, whose is 2."""
RUBBER = {**FIRM, "contype": 1, "conaffinity": 4, "friction": (1.0, 0.005, 0.0001)}
"""Of the pads of the jaws, which touch the belt's points, not the capsules: force sensors do not feel those."""
PLATE = (0.16, 0.24, 0.38, 1)
FACETS = 32
"""Of a cone."""
BOX, CYLINDER, MESH = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER, mujoco.mjtGeom.mjGEOM_MESH
SPHERE = mujoco.mjtGeom.mjGEOM_SPHERE


def add_belt(spec: mujoco.MjSpec, middle: np.ndarray) -> None:
    """Add the belt: points `belt0`, `belt1`, ..., each with slides along x, y and z, counter-clockwise from above.

    The force of a soft constraint at rest is its stiffness, times impedance / (1 - impedance), over the inverse inertia
    that it acts on (MuJoCo, Computation, Solver parameters); it is set to what the belt pulls with.

    Args:
        spec: Scene.
        middle: Of the circle that is its form where all slides are at 0 [m].
    """
    b, names = BELT, [f"belt{i}" for i in range(BELT.pieces)]
    radius = b.piece / (2.0 * math.sin(math.pi / b.pieces))
    for i, name in enumerate(names):
        angle = 2.0 * math.pi * i / b.pieces
        place = middle + radius * np.array([math.cos(angle), math.sin(angle), 0.0])
        point = spec.worldbody.add_body(name=name, pos=place, mass=b.mass / b.pieces, explicitinertial=True)
        point.inertia = (1e-9, 1e-9, 1e-9)
        point.add_geom(
            type=SPHERE, size=(b.radius, 0, 0), mass=0, rgba=(0, 0, 0, 0), contype=4, conaffinity=0, condim=3
        )
        for axis, along in zip("xyz", np.eye(3), strict=True):
            point.add_joint(name=f"{name}{axis}", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=along, armature=b.armature)
    ring = np.arange(b.pieces, dtype=np.int32)
    cord = spec.add_flex()
    cord.name, cord.dim, cord.radius, cord.rgba = "belt", 1, b.radius, ORANGE
    cord.vertbody, cord.vert = names, np.zeros(3 * b.pieces)
    cord.elem = np.column_stack((ring, np.roll(ring, -1))).ravel()
    cord.contype, cord.conaffinity, cord.condim, cord.selfcollide = 2, 0, 3, 0
    pull = spec.add_equality(name="belt", type=mujoco.mjtEq.mjEQ_FLEX, name1="belt")
    inverse = 2.0 / (b.mass / b.pieces + b.armature)
    rate = b.stiffness / b.piece * inverse * (1.0 - b.impedance) / b.impedance
    pull.solref, pull.solimp = (-rate, -2.0 * math.sqrt(rate)), (b.impedance, b.impedance, 0.001, 0.5, 2.0)


def compile_with_belt(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Compile a scene, and damp the belt in it, which MuJoCo simulates, but does not take from a joint of a flex."""
    model = spec.compile()
    for i in range(BELT.pieces):
        for axis in "xyz":
            model.dof_damping[model.joint(f"belt{i}{axis}").dofadr[0]] = BELT.damping
    return model


def loop(half: float) -> np.ndarray:
    """Return evenly spaced points of a belt between two hands, counter-clockwise from above [m]. Shape (pieces, 2).

    Args:
        half: Half the distance of the middles of its turns, along y [m].
    """
    straight, arc = 2.0 * half, math.pi * JAW.turn
    points = []
    for s in np.arange(BELT.pieces) * 2.0 * (straight + arc) / BELT.pieces:
        back, s = divmod(float(s), straight + arc)
        angle = max(0.0, s - straight) / JAW.turn
        x, y = JAW.turn * math.cos(angle), min(s, straight) - half + JAW.turn * math.sin(angle)
        points.append((-x, -y) if back else (x, y))
    return np.array(points)


def add_drive(spec: mujoco.MjSpec) -> None:
    """Add the mocap body `drive`: a plate with both pulleys, the middles of whose grooves are at +-y in its frame."""
    p, half = PULLEY, PULLEY.groove / 2
    drive = spec.worldbody.add_body(name="drive", mocap=True)
    drive.add_geom(type=BOX, size=(0.07, 0.14, 0.004), pos=(0, 0, -p.height - 0.004), rgba=PLATE, **STEEL)
    visual(drive, BOX, DARK, size=(0.064, 0.134, 0.02), pos=(0, 0, -p.height - 0.027))
    angles = 2.0 * math.pi * np.arange(FACETS) / FACETS
    circle = np.column_stack((np.cos(angles), np.sin(angles)))
    rings = ((p.flange, 0.0), (p.flange, p.thickness), (p.tip, p.thickness + p.cone))
    cap = spec.add_mesh(name="cap")
    cap.uservert = np.concatenate([np.column_stack((r * circle, np.full(FACETS, z))) for r, z in rings]).ravel()
    below = (p.height - half) / 2
    for y in (p.apart / 2, -p.apart / 2):
        drive.add_geom(type=CYLINDER, size=(p.hub, half, 0), pos=(0, y, 0), rgba=GREY, **STEEL)
        drive.add_geom(type=CYLINDER, size=(p.rim, below, 0), pos=(0, y, -half - below), rgba=WHITE, **STEEL)
        drive.add_geom(type=MESH, meshname="cap", pos=(0, y, half), rgba=WHITE, **STEEL)


def add_jaws(spec: mujoco.MjSpec, hand: mujoco.MjsBody, start: float, tcp: float) -> None:
    """Add two jaws to a hand, and the site `tcp`: between the pads, where the belt is pinched.

    Args:
        spec: Scene of the hand.
        hand: Whose z points out of it, and whose x to where the belt is pulled from.
        start: Where the jaws begin, along z [m].
        tcp: Of the tcp, along z [m].
    """
    j = JAW
    for name, sign in (("left_finger", -1.0), ("right_finger", 1.0)):  # the upper and the lower one
        jaw = hand.add_body(name=name)
        jaw.mass, jaw.ipos, jaw.inertia, jaw.explicitinertial = 0.03, (0, 0, tcp), (8e-6, 8e-6, 2e-6), True
        drive_finger(spec, jaw, (0, 0, sign), j.travel, j.stiffness, 120.0)
        pad = tcp + sign * j.thickness / 2
        jaw.add_geom(type=BOX, size=(j.depth, j.width, j.thickness / 2), pos=(0, 0, pad), rgba=DARK, mass=0, **RUBBER)
        back, end = -j.depth - (0.003 if sign < 0.0 else 0.009), tcp + max(0.0, sign) * j.thickness
        shank = (end - start) / 2
        jaw.add_geom(
            type=BOX,
            size=(0.003, 0.006, shank),
            pos=(back, 0, start + shank),
            rgba=GREY,
            mass=0,
            **{**RUBBER, "conaffinity": 0},
        )
        if sign > 0.0:
            jaw.add_geom(
                type=BOX,
                size=(0.006, 0.006, j.thickness / 2),
                pos=(-j.depth - 0.006, 0, pad),
                rgba=GREY,
                mass=0,
                **{**RUBBER, "conaffinity": 0},
            )
    hand.add_site(name="tcp", pos=(0, 0, tcp), size=(0.002, 0.002, 0.002), group=4)
