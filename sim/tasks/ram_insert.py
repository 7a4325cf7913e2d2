"""Task `ram_insert`: press a memory module into its socket until the latches at both ends have snapped in.

The module is a DIMM, 133 mm long and 1.4 mm thick, held by the gripper from the start. The gap between it and the
socket is 0.3 mm on every side. A sprung latch at each end has a round nose in the way of the module: pushed down, the
module bends it outwards until it snaps into a notch and holds the module. Both latches at once take more force than the
arm has, so that the module is pressed in at one end first, as by hand.

The socket lies within 2 cm and 10 degrees of its nominal pose. The policy receives an estimate of it that is wrong by
up to 2 mm and 0.75 degrees; over half the length of the module the latter is 0.9 mm.

Success: the module is at the bottom of its socket and both latches are in its notches, for two steps. The counterpart
on a robot is the RAM insertion of HIL-SERL (Luo et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np

from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_multiply
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.shapes import DARK, GREY, ORANGE, WHITE, visual
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InsertionOperator, OperatorSkill
from sim.scene import CAMERAS, CONTACT, DOWNWARD, BlockColours, add_hand, add_hole_block, add_wrist_camera, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.insertion import Insertion, InsertionParameters


class Module(NamedTuple):
    """Dimensions of the memory module [m]; heights are over its lower edge."""

    half_length: float = 0.0665
    half_thickness: float = 0.0007
    height: float = 0.031
    notch: tuple[float, float] = (0.0024, 0.0078)
    """Heights between which it is shorter."""
    notch_depth: float = 0.0016


class Latch(NamedTuple):
    """Dimensions and spring of a latch; heights are over the mouth of the socket [m]."""

    nose_height: float = -0.005
    nose_radius: float = 0.0025
    protrusion: float = 0.001
    """Of the nose into the way of the module."""
    axis_height: float = -0.015
    top: float = 0.014
    stiffness: float = 0.75
    """[Nm/rad]"""
    preload: float = 0.1
    """Angle by which the spring is bent when the latch rests [rad]."""


MODULE, LATCH = Module(), Latch()
SOCKET_DEPTH, SOCKET_FLOOR, SOCKET_MARGIN = 0.01, 0.005, 0.0055
"""Of the socket: depth, thickness of its floor, and width of its rim [m]."""
TOOL_LENGTH = 0.14
"""From the flange to the lower edge of the module [m]."""
HOME_ANGLE = 0.03
"""Angle below which a latch has snapped in [rad]; a module on its way bends it by 0.1."""
BOARD = (0.085, 0.115)
"""Half the sides of the main board [m]."""
PCB, LAMINATE, GOLD = (0.05, 0.36, 0.20, 1), (0.04, 0.25, 0.22, 1), (0.83, 0.66, 0.25, 1)
BOX = mujoco.mjtGeom.mjGEOM_BOX


@dataclass(frozen=True, kw_only=True)
class RamInsertParameters(InsertionParameters):
    """Those of `ram_insert` [m, rad]."""

    clearance: float = 0.0003
    chamfer: float = 0.0008
    block_height: float = SOCKET_DEPTH + SOCKET_FLOOR + 0.03
    start_height: float = 0.034
    estimate_error: float = 0.002
    estimate_error_yaw: float = float(np.deg2rad(0.75))
    success_depth: float = SOCKET_DEPTH - 0.0007
    success_yaw: float = float(np.deg2rad(1.0))


SPEC = TaskSpec(
    name="ram_insert",
    instruction="press the memory module into its socket until both latches have snapped in",
    max_steps=120,
    control_period=0.1,
    workspace=Workspace(low=(-0.035, -0.035, -0.055), high=(0.035, 0.035, 0.02), yaw=0.3, tilt=0.2),
    action_axes=("x", "y", "z", "roll", "yaw"),
    cameras=CAMERAS,
    world=("clearance", "friction", "tilt", "estimate_error", "arm", *ARM_WORLD),
)


class RamInsert(Insertion):
    """The module in its socket, and both latches in its notches."""

    def latch_angles(self) -> np.ndarray:
        """Return how far the latches are bent outwards [rad], shape (2,)."""
        return self._io.data.qpos[-2:].copy()

    def is_inserted(self, depth: float, lateral: float, yaw: float, tilt: float) -> bool:
        """Return whether the module is at the bottom and both latches have snapped in."""
        return super().is_inserted(depth, lateral, yaw, tilt) and bool((self.latch_angles() < HOME_ANGLE).all())


class PressingOperator(InsertionOperator):
    """Operator that presses one end of the module in first, then the other, with all of the arm's strength."""

    entered = 0.0015
    """Depth from which on it presses [m]."""
    tilt = 0.06
    """Of the module while the first end is pressed in [rad]."""

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan as for any insertion; in the socket, down at the first end until it is in, then down at both."""
        goal, speed, gripper = super().plan(state)
        here, mouth = state.T_base_tcp, self._hole().position
        depth = mouth[2] - here.position[2]
        if depth < self.entered:
            return goal, speed, gripper
        first_end = (here @ Pose(np.array([0.0, -MODULE.half_length, 0.0]), np.array([1.0, 0, 0, 0]))).position
        tilt = self.tilt if mouth[2] - first_end[2] < SOCKET_DEPTH - 0.001 else 0.0
        lean = np.array([np.cos(tilt / 2), -np.sin(tilt / 2), 0.0, 0.0])
        down = np.append(goal.position[:2], here.position[2] - 0.015)
        return Pose(down, quat_multiply(goal.quaternion, lean)), 4.0, gripper


def add_module_tool(spec: mujoco.MjSpec, arm: str | None = None) -> None:
    """Add the arm with a gripper that holds the module; the tcp is the middle of its lower edge, y along it."""
    tool, m = add_hand(spec, (0.055, 0.025), arm), MODULE
    for sign in (-1.0, 1.0):  # the fingers, on the faces of the module
        visual(tool, BOX, DARK, size=(0.0035, 0.009, 0.0305), pos=(sign * 0.0044, 0, 0.0905))
    tip = TOOL_LENGTH
    low, high = m.notch
    parts = ((0.0, low, m.half_length), (low, high, m.half_length - m.notch_depth), (high, m.height, m.half_length))
    for bottom, top, half_length in parts:
        tool.add_geom(
            type=BOX,
            size=(m.half_thickness, half_length, (top - bottom) / 2),
            pos=(0, 0, tip - (bottom + top) / 2),
            rgba=LAMINATE,
            mass=0,
            **{**CONTACT, "contype": 3},
        )
    visual(tool, BOX, GOLD, size=(m.half_thickness + 0.0001, m.half_length - 0.003, 0.0014), pos=(0, 0, tip - 0.0016))
    for chip in range(8):
        y = (chip - 3.5) * 0.0155
        visual(tool, BOX, DARK, size=(m.half_thickness + 0.0011, 0.0055, 0.0045), pos=(0, y, tip - 0.0185))
    for sign in (-1.0, 1.0):  # labels
        place = (0, sign * 0.037, tip - 0.0272)
        visual(tool, BOX, ORANGE, size=(m.half_thickness + 0.0004, 0.022, 0.0032), pos=place)
    tool.add_site(name="tcp", pos=(0, 0, tip), size=(0.002, 0.002, 0.002), group=4)
    add_wrist_camera(tool, tip, (0.075, 0.045, 0.05), fovy=55)


def add_socket(spec: mujoco.MjSpec, parameters: RamInsertParameters) -> None:
    """Add the main board with the socket, its mouth at the origin of the mocap body `block`, and the two latches."""
    m, p = MODULE, parameters
    half_widths = (m.half_thickness + SOCKET_MARGIN, m.half_length + p.clearance + 0.002)
    height = SOCKET_DEPTH + SOCKET_FLOOR
    block = add_hole_block(
        spec,
        half_widths=half_widths,
        height=height,
        clearance=p.clearance,
        chamfer=p.chamfer,
        part=(m.half_thickness, m.half_length),
        colours=BlockColours(sides=(0.1, 0.1, 0.12, 1), top=(0.16, 0.17, 0.2, 1), chamfer=(0.45, 0.47, 0.5, 1)),
    )
    thickness = 0.0008
    block.add_geom(type=BOX, size=(*BOARD, thickness), pos=(0, 0, -height - thickness), rgba=PCB, **CONTACT)
    for x, y, half_x, half_y, half_z, rgba in (
        (-0.055, 0.03, 0.018, 0.018, 0.006, GREY),
        (-0.05, -0.04, 0.01, 0.014, 0.001, DARK),
        (0.055, -0.05, 0.012, 0.012, 0.001, DARK),
        (0.06, 0.06, 0.008, 0.02, 0.004, DARK),
    ):  # what else is on a main board
        block.add_geom(type=BOX, size=(half_x, half_y, half_z), pos=(x, y, half_z - height), rgba=rgba, **CONTACT)
    tray = (parameters.block_height - height) / 2 - thickness
    visual(
        block, BOX, GREY, size=(BOARD[0] - 0.004, BOARD[1] - 0.004, tray), pos=(0, 0, -height - 2 * thickness - tray)
    )
    for name, sign in (("far_latch", 1.0), ("near_latch", -1.0)):
        _add_latch(block, name, sign, parameters)


def _add_latch(block: mujoco.MjsBody, name: str, sign: float, parameters: RamInsertParameters) -> None:
    """Add a latch at the end of the socket in the direction `sign` along y; it turns about x, positive outwards."""
    latch, end = LATCH, MODULE.half_length
    nose = end + latch.nose_radius - latch.protrusion
    lever = end + parameters.clearance + 0.004
    body = block.add_body(name=name, pos=(0, sign * nose, latch.axis_height))
    joint = body.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=(-sign, 0, 0))
    # More inertia than a latch has: with its own, contact of this softness gives way by tenths of a millimetre.
    joint.range, joint.limited, joint.armature = (0.0, 0.4), True, 5e-5
    joint.solref_limit, joint.solimp_limit = (0.004, 1.0), (0.99, 0.999, 0.001, 0.5, 2.0)
    joint.stiffness[0], joint.springref, joint.damping[0] = latch.stiffness, -latch.preload, 4e-3
    body.mass, body.inertia, body.explicitinertial = 0.002, (5e-7, 5e-7, 1e-7), True
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        fromto=(-0.002, 0, latch.nose_height - latch.axis_height, 0.002, 0, latch.nose_height - latch.axis_height),
        size=(latch.nose_radius, 0, 0),
        rgba=WHITE,
        **{**CONTACT, "contype": 0, "conaffinity": 2},  # meets the module alone
    )
    half = (latch.top - latch.axis_height) / 2
    visual(body, BOX, WHITE, size=(0.0035, 0.0015, half), pos=(0, sign * (lever - nose), half))
    visual(body, BOX, WHITE, size=(0.0045, 0.003, 0.002), pos=(0, sign * (lever - nose + 0.002), 2 * half))


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `ram_insert`."""
    parameters = RamInsertParameters().in_world(options.world)
    spec = new_scene()
    add_module_tool(spec, options.world.arm)
    add_socket(spec, parameters)
    model = spec.compile()
    io = MujocoRobotIO(model, simulation=options.simulation, sensing=parameters.sensing)
    start = np.array([0.5, 0.0, parameters.block_height + parameters.start_height])
    q_start = np.append(solve_ik(model, "tcp", start, DOWNWARD), np.zeros(2))
    task = RamInsert(io, q_start, SPEC, parameters)
    skill = OperatorSkill(yaw_error=0.004)
    operator = PressingOperator(SPEC, lambda: task.T_base_hole, SOCKET_DEPTH, skill=skill)
    return simulated_workcell(io, task, operator, options, parameters.dynamics)
