"""Task `usb_pick_insert`: pick a plug out of a tray, whatever its yaw, and insert it into the port of a hub.

The plug stands in the well of a tray, turned by any angle, and the gripper has to come from above across its flat
faces. How it lies between the fingers then depends on how it was grasped. Its metal shell is that of USB-A, 12 x 4.5 mm
and 12 mm long, with 0.3 mm of gap in the port on every side. It is modelled without the tongue inside, so that either
way round fits.

Tray and port lie within 15 mm of their nominal places, the port turned by up to 10 degrees. The policy receives an
estimate of either: that of the plug is wrong by up to 3 mm and 3 degrees, that of the port by up to 4 mm and 4
degrees.

Success: the shell is in the port over its whole length, for two steps. A plug that has fallen over ends the episode as
a failure. The counterpart on a robot is the USB insertion of HIL-SERL (Luo et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import mujoco
import numpy as np

from robot_rl.data.sparse_reward import stage_metrics
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_multiply, swing_twist_z, yaw_pose
from robot_rl.spec import ArraySpec
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.shapes import DARK, GREY, ORANGE, WHITE, visual
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InsertionOperator, InterventionHabit, way_over
from sim.scene import (
    CAMERAS,
    CONTACT,
    DOWNWARD,
    FINGER_RANGE,
    GRIP,
    BlockColours,
    add_gripper_tool,
    add_hole_block,
    add_table,
    new_scene,
)
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.cube import GraspOperator
from sim.tasks.insertion import Insertion, InsertionParameters
from sim.tasks.pose_estimate import drawn_offset, seen_from_tcp


class Plug(NamedTuple):
    """Dimensions of the plug [m]: of the metal shell that goes into the port, and of the body that is grasped."""

    shell: tuple[float, float] = (0.006, 0.00225)
    shell_length: float = 0.012
    body: tuple[float, float] = (0.010, 0.006)
    body_length: float = 0.026
    mass: float = 0.08


PLUG = Plug()
TOP = 0.022
"""Height of tray and hub [m]."""
LIFTED = 0.004
"""Height of the plug above them from which on it counts as lifted out of its well [m]."""
WELL_GAP = 0.0015
"""Between the plug's shell and the sides of the well, which is square [m]."""
TRAY, HUB = (0.5, -0.06), (0.5, 0.06)
"""Nominal places of the well and of the port, x and y in the base frame [m]."""
GRIP_STIFFNESS = 1800.0
"""Of the fingers [N/m]: they hold the plug with 11 N each, so that it hardly slips when it is pressed into the port."""
WIDE = 0.02
"""Distance of the fingers from which on they hold nothing for sure [m]."""
PLUG_ERROR, PLUG_ERROR_YAW = 0.003, float(np.deg2rad(3.0))
FALLEN = float(np.deg2rad(45.0))
START = np.array([0.5, 0.0, 0.13])
BOX = mujoco.mjtGeom.mjGEOM_BOX
METAL = (0.75, 0.76, 0.78, 1)
FIRM = {"priority": 1, "condim": 4, "solref": (0.006, 1.0), "solimp": (0.99, 0.999, 0.0005, 0.5, 2.0)}
"""Contact of the plug, which is light: with the fingers' own softness it would sink into them by a millimetre."""


@dataclass(frozen=True, kw_only=True)
class UsbInsertParameters(InsertionParameters):
    """Those of `usb_pick_insert` [m, rad]."""

    clearance: float = 0.0003
    chamfer: float = 0.0002
    block_height: float = TOP
    start_height: float = START[2] - TOP
    hole_range: float = 0.015
    estimate_error: float = 0.004
    estimate_error_yaw: float = float(np.deg2rad(4.0))
    success_depth: float = PLUG.shell_length - 0.001


SPEC = TaskSpec(
    name="usb_pick_insert",
    instruction="pick the plug out of the tray and insert it into the port of the hub",
    max_steps=200,
    control_period=0.1,
    workspace=Workspace(low=(-0.05, -0.10, -0.10), high=(0.05, 0.10, 0.03), yaw=1.75, tilt=0.2),
    action_axes=("x", "y", "z", "yaw"),
    action_rotation=0.12,
    gripper=True,
    gripper_open_width=2 * FINGER_RANGE,
    cameras=CAMERAS,
    world=("clearance", "friction", "tilt", "estimate_error", "arm", *ARM_WORLD),
    stages=("lifted",),
)


class UsbPickInsert(Insertion):
    """The plug in the port, after it was picked.

    Args:
        io: The simulated arm with the gripper; the plug's free joint comes after the fingers.
        q_start: Joint angles of the start [rad].
        spec: Facts of the task.
        parameters: Dimensions.
        estimate_error: Factor of the largest error of the estimate of the plug.
    """

    def __init__(
        self,
        io: MujocoRobotIO,
        q_start: np.ndarray,
        spec: TaskSpec,
        parameters: UsbInsertParameters,
        estimate_error: float = 1.0,
    ) -> None:
        super().__init__(io, q_start, spec, parameters)
        self._x, self._y = HUB
        self._error, self._plug = estimate_error, io.model.body("plug").id
        self.T_base_plug_estimate = Pose.identity()

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the specs of the estimated port and plug in the tcp frame, and of the grip.

        The port is 0.1 m away at first, not beside the tip, and the grip, the distance of the fingers up to `WIDE`,
        tells 12 mm from none: scaled as elsewhere, critics did not see whether anything was held.
        """
        pose = ArraySpec((4,), unit="m, rad", scale=(0.02, 0.02, 0.02, 0.2))
        grip = ArraySpec((1,), unit="m", scale=WIDE / 2)
        return {"state/hole_estimate": pose, "state/plug_estimate": pose, "state/grip": grip}

    def placed(self, rng: np.random.Generator) -> np.ndarray:
        """Put the tray somewhere and the plug into it, turned by a quarter at most, as its two sides are alike."""
        x, y = np.array(TRAY) + rng.uniform(-self.parameters.hole_range, self.parameters.hole_range, 2)
        yaw = rng.uniform(-np.pi / 2, np.pi / 2)
        self._io.data.mocap_pos[1] = (x, y, TOP)
        dx, dy = drawn_offset(rng, self._error * PLUG_ERROR)
        error = self._error * rng.uniform(-PLUG_ERROR_YAW, PLUG_ERROR_YAW)
        self.T_base_plug_estimate = yaw_pose(x + dx, y + dy, TOP + PLUG.body_length / 2, yaw + error)
        plug = yaw_pose(x, y, TOP, yaw)
        fingers = [FINGER_RANGE, FINGER_RANGE]
        return np.concatenate((self.q_start, fingers, plug.position, plug.quaternion))

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return port and plug as estimated at reset, in the tcp frame [m, rad], and the grip [m]."""
        plug, grip = seen_from_tcp(state, self.T_base_plug_estimate), np.array([min(state.gripper_width, WIDE)])
        return {**super().observe(state, T_base_reset), "state/plug_estimate": plug, "state/grip": grip}

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene; a plug that has fallen over is a failure."""
        outcome = super().evaluate(state)
        in_port = outcome.metrics["depth"] > 0.0 and outcome.metrics["lateral_error"] < PLUG.shell[1]
        lifted = stage_metrics(lifted=self.lifted() or in_port)  # in the port it is lower than in its well
        outcome = replace(outcome, metrics={**outcome.metrics, **lifted})
        _, tilt = swing_twist_z(self.plug_pose().quaternion)
        return replace(outcome, failure="the plug has fallen over") if tilt > FALLEN else outcome

    def is_inserted(self, depth: float, lateral: float, yaw: float, tilt: float) -> bool:
        """Return whether the shell is in the port, either way round."""
        return super().is_inserted(depth, lateral, half_turn(yaw), tilt)

    def tip(self) -> Pose:
        """Return the true pose of the end of the shell in the base frame, z along the plug."""
        T_base_body = self.plug_pose()
        end = T_base_body @ Pose(np.array([0.0, 0.0, -PLUG.shell_length]), np.array([1.0, 0.0, 0.0, 0.0]))
        return Pose(end.position, quat_multiply(end.quaternion, DOWNWARD))

    def plug_pose(self) -> Pose:
        """Return the true pose of the plug's body in the base frame: of the middle of its lower face, z up."""
        data = self._io.data
        return Pose(data.xpos[self._plug].copy(), data.xquat[self._plug].copy())

    def lifted(self) -> bool:
        """Return whether the plug has been lifted out of its well."""
        return bool(self.plug_pose().position[2] > TOP + LIFTED)

    def grasp_pose(self) -> Pose:
        """Return the middle of the plug's body, z up, turned by a quarter at most: its two ends are alike."""
        body = self.plug_pose()
        yaw, _ = swing_twist_z(body.quaternion)
        x, y, z = (body @ Pose(np.array([0.0, 0.0, PLUG.body_length / 2]), np.array([1.0, 0, 0, 0]))).position.tolist()
        return yaw_pose(x, y, z, half_turn(yaw))

    def port_for_tcp(self) -> Pose:
        """Return where the tcp is when the end of the shell is at the mouth of the port, base frame, z up."""
        tcp, tip = self._io.controller.pose(), self.tip()
        x, y, z = (self.T_base_hole.position + tcp.position - tip.position).tolist()
        port_yaw, _ = swing_twist_z(self.T_base_hole.quaternion)
        return yaw_pose(x, y, z, half_turn(port_yaw + heading(tcp) - heading(tip)))


def heading(downward: Pose) -> float:
    """Return the turn about the vertical of a pose that points down [rad]."""
    yaw, _ = swing_twist_z(quat_multiply(downward.quaternion, DOWNWARD))
    return yaw


def half_turn(yaw: float) -> float:
    """Return an angle in [-pi/2, pi/2) that looks the same where a half turn changes nothing [rad]."""
    return float((yaw + np.pi / 2) % np.pi - np.pi / 2)


class PlugOperator(GraspOperator):
    """Operator that grasps the plug, lifts it out of its well, carries it over the port, and inserts it.

    Args:
        task: The task, whose true scene it sees.
    """

    aligned = 0.003
    clear = TOP + PLUG.shell_length + 0.008
    """Height of the middle of the lower face of the body at which the shell is over everything [m]."""
    near = 0.004
    """Distance of the shell's end from over the port below which it begins to insert [m]."""

    def __init__(self, task: UsbPickInsert) -> None:
        # As long as a grasp takes: a policy that flutters its gripper drops what is handed back to it half-way.
        habit = InterventionHabit(stall_steps=8, progress=0.004, burst=(24, 90))
        super().__init__(task.spec, task.grasp_pose, habit)
        self._task = task
        self._insertion = InsertionOperator(task.spec, task.port_for_tcp, PLUG.shell_length)
        self._inserting = False

    def reset(self, seed: int, demonstrate: bool) -> None:
        """Start an episode."""
        self._insertion.reset(seed, demonstrate)
        super().reset(seed, demonstrate)

    def begin(self) -> None:
        """Discard the state of grasp and insertion."""
        super().begin()
        self._insertion.begin()
        self._inserting = False

    def distance(self, state: RobotState) -> float:
        """Return the distance of the fingers to the plug plus the plug's way out of its well into the port [m]."""
        reach = float(np.linalg.norm(state.T_base_tcp.position - self._task.grasp_pose().position))
        bottom = self._task.T_base_hole.position - np.array([0.0, 0.0, PLUG.shell_length])
        return reach + way_over(self._task.tip().position, bottom, self.clear - PLUG.shell_length, self.near)

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan as for any grasp; where a policy has grasped the plug already, go on from there."""
        held = 0.5 * PLUG.body[1] < state.gripper_width / 2 < 1.5 * PLUG.body[1]
        if held and self._task.lifted() and not self._closing:
            self._closing, self._waited = True, self.grip_steps
        return super().plan(state)

    def carry(self, state: RobotState, attitude: np.ndarray) -> tuple[Pose, float]:
        """Return a point above at first, then over the port, then what an insertion asks for."""
        here, port = state.T_base_tcp, self._task.port_for_tcp()
        way = port.position - here.position
        height = float(self._task.plug_pose().position[2])
        port_yaw, _ = swing_twist_z(port.quaternion)
        lateral, turn = float(np.hypot(*way[:2])), abs(half_turn(heading(here) - port_yaw))
        if lateral < self.near and turn < 0.1:
            self._inserting = True
        elif lateral > 4 * self.near:
            self._inserting = False
        if self._inserting:
            goal, _, _ = self._insertion.plan(state)
            return goal, -1.0
        if height < self.clear and lateral > self.near:
            return Pose(here.position + np.array([0.0, 0.0, self.clear + 0.006 - height]), attitude), -1.0
        over = np.array([*port.position[:2], here.position[2] + self.clear + 0.004 - height])
        return Pose(over, quat_multiply(port.quaternion, DOWNWARD)), -1.0


def add_plug(spec: mujoco.MjSpec) -> None:
    """Add the plug as a free body, its origin in the middle of the lower face of its body, z up."""
    plug = spec.worldbody.add_body(name="plug", pos=(*TRAY, TOP))
    plug.add_freejoint(name="plug")
    p = PLUG
    plug.add_geom(
        name="plug_body",
        type=BOX,
        size=(*p.body, p.body_length / 2),
        pos=(0, 0, p.body_length / 2),
        mass=0.9 * p.mass,
        rgba=ORANGE,
        friction=GRIP["friction"],
        **FIRM,
    )
    plug.add_geom(
        name="shell",
        type=BOX,
        size=(*p.shell, p.shell_length / 2),
        pos=(0, 0, -p.shell_length / 2),
        mass=0.1 * p.mass,
        rgba=METAL,
        friction=CONTACT["friction"],
        **FIRM,
    )
    visual(
        plug,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        DARK,
        fromto=(0, 0, p.body_length, 0, 0, p.body_length + 0.012),
        size=(0.003, 0, 0),
    )
    for sign in (-1.0, 1.0):
        visual(plug, BOX, WHITE, size=(0.0035, 0.0002, 0.0035), pos=(0, sign * p.body[1], 0.016))


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `usb_pick_insert`."""
    parameters = UsbInsertParameters().in_world(options.world)
    spec = new_scene(look_at=(0.5, 0.0, 0.05), distance=1.0)
    add_gripper_tool(spec, GRIP_STIFFNESS, options.world.arm)
    add_hole_block(
        spec,
        half_widths=(0.03, 0.02),
        height=TOP,
        clearance=parameters.clearance,
        chamfer=parameters.chamfer,
        part=PLUG.shell,
        colours=BlockColours(sides=(0.12, 0.13, 0.16, 1), top=(0.22, 0.24, 0.28, 1), chamfer=METAL),
    )
    add_hole_block(
        spec,
        name="tray",
        half_widths=(0.03, 0.03),
        height=TOP,
        clearance=WELL_GAP,
        chamfer=0.0005,
        part=(PLUG.shell[0], PLUG.shell[0]),
        colours=BlockColours(sides=(0.3, 0.31, 0.34, 1), top=GREY, chamfer=WHITE),
    )
    add_table(spec)
    add_plug(spec)
    model = spec.compile()
    io = MujocoRobotIO(model, simulation=options.simulation, finger_open_width=2 * FINGER_RANGE)
    q_start = solve_ik(model, "tcp", START, DOWNWARD)
    task = UsbPickInsert(io, q_start, SPEC, parameters, options.world.estimate_error)
    return simulated_workcell(io, task, PlugOperator(task), options, parameters.dynamics)
