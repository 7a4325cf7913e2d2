"""Task `whip`: knock the orange block out of a tower with a flick, so that the other blocks stay where they stand.

Six wooden blocks lie on each other, and nothing but friction holds them. The hand holds a rod with a weight at its
end, which swings sideways about the grip against a spring. Whoever pushes the block out slowly drags along what lies
on it, and whoever follows through strikes it. A fast stroke that ends at the face of the block takes only that out, and
what lay on it drops by the thickness of one block.

The tower stands within 1 cm of its nominal place along x and y, its yaw within 10 degrees; the orange block is the
second, third or fourth from below. The policy receives an estimate of that block that is wrong by up to 4 mm in the
plane, 2.5 mm in height and 4 degrees, and follows it for 10 cm; friction differs from episode to episode by up to a
quarter.

Success: the orange block is off the tower, and all others rest within 14 mm of their places and upright to 3 degrees,
for four steps.
The counterpart on a robot is the Jenga whipping of HIL-SERL (Luo et al. 2024).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import mujoco
import numpy as np

from robot_rl.config.randomization import DynamicsConfig
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_multiply, quat_rotate, swing_twist_z, yaw_pose
from robot_rl.spec import ArraySpec
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.shapes import DARK, GREY, ORANGE, WHITE, visual
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InterventionHabit, OperatorSkill, ScriptedOperator
from sim.scene import CAMERAS, CONTACT, DOWNWARD, add_hand, add_wrist_camera, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.pose_estimate import drawn_offset, seen_from_tcp


class RodShape(NamedTuple):
    """The rod, along the x axis of the tool; it swings about the tool's z at the grip, which is the tcp."""

    length: float = 0.25
    """From the grip to the middle of the weight [m]."""
    radius: float = 0.0025
    mass: float = 0.012
    weight_radius: float = 0.004
    weight_mass: float = 0.018
    frequency: float = 9.0
    """At which it swings [Hz]."""
    damping_ratio: float = 0.1

    @property
    def inertia(self) -> float:
        """About the grip [kg m^2]."""
        return (self.mass / 3.0 + self.weight_mass) * self.length**2


ROD = RodShape()
HALF = np.array([0.015, 0.018, 0.01])
"""Half the sides of a block along x, y and z [m]."""
BLOCKS, BLOCK_MASS = 6, 0.008
RANKS = (1, 2, 3)
"""Of the orange block, counted from 0 at the bottom."""
TOOL_LENGTH = 0.12
"""From the flange to the grip [m]."""
PLATE_HEIGHT = 0.06
"""Of the plate on which the tower stands [m]."""
TOWER = np.array([0.62, 0.0])
"""Nominal place of the tower in the base frame [m]."""
START = Pose(
    np.array([0.37, -0.08, PLATE_HEIGHT + 0.06]), quat_multiply(yaw_pose(0.0, 0.0, 0.0, -0.3).quaternion, DOWNWARD)
)
"""Of the tcp, base frame."""
FOLLOWED = 0.1
"""How far the estimate follows the orange block from its place at reset [m]."""
WOOD, PLATE = ((0.86, 0.74, 0.55, 1), (0.66, 0.53, 0.36, 1)), (0.16, 0.24, 0.38, 1)
WOODEN = {"condim": 3, "friction": (0.12, 0.005, 0.0001)} | {
    "solref": (0.003, 1.0),
    "solimp": (0.95, 0.99, 0.0005, 0.5, 2.0),
}
"""Contact of polished wood."""
STRIKING = {**WOODEN, "solref": (0.0167, 0.12), "priority": 1}
"""Contact of hard rubber: a block springs off at two thirds of the speed of the blow, which lasts 6 ms."""
BOX, CAPSULE, SPHERE = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_SPHERE


@dataclass(frozen=True, kw_only=True)
class WhipParameters:
    """What determines the difficulty [m, rad]."""

    range: float = 0.01
    """Of the tower along x and y."""
    yaw_range: float = math.radians(10.0)
    jitter: float = 0.0005
    """Of each block on the one below, along x and y."""
    jitter_yaw: float = math.radians(1.0)
    estimate_error: float = 0.004
    estimate_error_z: float = 0.0025
    estimate_error_yaw: float = math.radians(4.0)
    out: float = 0.05
    """Distance from the tower's axis from which on the orange block is off the tower."""
    off: float = 0.014
    """Largest distance of another block from its place."""
    tilt: float = math.radians(3.0)
    fallen: float = 0.02
    """Distance from the tower's axis at which another block has fallen."""
    fallen_tilt: float = math.radians(30.0)
    rest_speed: float = 0.01
    """[m/s]"""
    hold_steps: int = 4
    dynamics: DynamicsConfig = field(default_factory=lambda: DynamicsConfig(contact_friction=0.25))


SPEC = TaskSpec(
    name="whip",
    instruction="flick the orange block out of the tower so that all other blocks stay where they stand",
    max_steps=120,
    control_period=0.05,
    workspace=Workspace(low=(-0.04, -0.06, -0.06), high=(0.04, 0.14, 0.06), yaw=0.6, tilt=0.1),
    action_axes=("x", "y", "z", "yaw"),
    action_translation=0.05,
    action_rotation=0.2,
    cameras=CAMERAS,
    world=("friction", "estimate_error", "arm", *ARM_WORLD),
)
GAINS = ImpedanceGains(
    translation=2000.0,
    rotation=100.0,
    max_translation_error=SPEC.action_translation,
    max_rotation_error=SPEC.action_rotation,
    ramp=0.03,
)
"""The speed of a stroke follows from these: 0.4 m/s and 2.7 rad/s of the hand, 1.2 m/s of the weight."""


class Whip:
    """The tower; success: the orange block is out of it, and the others stand.

    Args:
        io: The simulated arm with the rod; the first mocap body is the plate, the free joints are those of the blocks.
        q_start: Joint angles of the arm at the start [rad].
        parameters: Dimensions.
    """

    spec = SPEC

    def __init__(self, io: MujocoRobotIO, q_start: np.ndarray, parameters: WhipParameters) -> None:
        self._io, self.q_start, self.parameters = io, q_start, parameters
        self._blocks = [io.model.body(f"block{i}").id for i in range(BLOCKS)]
        self._joints = [int(io.model.joint(f"block{i}").qposadr[0]) for i in range(BLOCKS)]
        self._speeds = [int(io.model.joint(f"block{i}").dofadr[0]) for i in range(BLOCKS)]
        self.T_base_tower = self.T_base_target = self.T_base_estimate = Pose.identity()
        self.rank, self._held = RANKS[0], 0

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the estimate of the orange block: tcp axes, seen from the end of a straight rod."""
        return {"state/block_estimate": ArraySpec((4,), unit="m, rad", scale=(0.02, 0.05, 0.01, 0.2))}

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the estimate of the orange block: tcp axes, from the end of a straight rod [m, rad].

        It follows the block, as what tracks it in pictures does: without, a block that is out could not be told from
        one that is not, and no stroke from its success.
        """
        del T_base_reset  # the estimate is relative to the tcp itself
        moved = self._io.data.xpos[self._blocks[0]] - self.T_base_target.position
        moved *= min(1.0, FOLLOWED / max(float(np.linalg.norm(moved)), 1e-9))
        estimate = self.T_base_estimate
        seen = seen_from_tcp(state, Pose(estimate.position + moved, estimate.quaternion))
        seen[0] -= ROD.length
        return {"state/block_estimate": seen}

    def reset(self, seed: int) -> None:
        """Draw the tower's pose, the orange block's place in it, and the error of its estimate."""
        p, rng, io = self.parameters, np.random.default_rng([seed, 1]), self._io
        x, y = TOWER + rng.uniform(-p.range, p.range, 2)
        yaw = rng.uniform(-p.yaw_range, p.yaw_range)
        self.T_base_tower = yaw_pose(x, y, PLATE_HEIGHT, yaw)
        self.rank = int(rng.choice(RANKS))
        height = (2 * self.rank + 1) * HALF[2]
        self.T_base_target = yaw_pose(x, y, PLATE_HEIGHT + height, yaw)
        dx, dy = drawn_offset(rng, p.estimate_error)
        self.T_base_estimate = yaw_pose(
            x + dx,
            y + dy,
            PLATE_HEIGHT + height + rng.uniform(-p.estimate_error_z, p.estimate_error_z),
            yaw + rng.uniform(-p.estimate_error_yaw, p.estimate_error_yaw),
        )
        qpos = np.zeros(io.model.nq)
        qpos[: len(self.q_start)] = self.q_start
        for block, rank in enumerate(self.ranks()):
            dx, dy = rng.uniform(-p.jitter, p.jitter, 2).tolist()
            turn = rng.uniform(-p.jitter_yaw, p.jitter_yaw)
            pose = self.T_base_tower @ yaw_pose(dx, dy, (2 * rank + 1) * HALF[2], turn)
            qpos[self._joints[block] :][:7] = np.concatenate((pose.position, pose.quaternion))
        io.data.mocap_pos[0], io.data.mocap_quat[0] = self.T_base_tower.position, self.T_base_tower.quaternion
        io.reset(qpos, seed)
        self._held = 0

    def ranks(self) -> list[int]:
        """Return how many blocks each block stands on at reset, the orange one first."""
        return [self.rank, *(rank for rank in range(BLOCKS) if rank != self.rank)]

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: the orange block out, all others at rest in their places."""
        del state  # the true scene decides, not the sensors
        p, blocks = self.parameters, self.blocks()
        others = blocks[1:]
        out = self.is_out(blocks[0])
        off, tilt = max(self.off(blocks)), max(_tilt(block) for block in others)
        failure = None
        if tilt > p.fallen_tilt or max(math.hypot(*block.position[:2]) for block in others) > p.fallen:
            failure = "the tower has fallen"
        self._held = self._held + 1 if out and self.speed() < p.rest_speed else 0
        success = False
        if failure is None and self._held >= p.hold_steps:
            success = off <= p.off and tilt <= p.tilt
            failure = None if success else "the tower is out of place"
        metrics = {"off": off, "distance": math.hypot(*blocks[0].position[:2])}
        return Outcome(success, success_reward(success), failure, metrics)

    def blocks(self) -> list[Pose]:
        """Return the poses of the blocks in the tower's frame, the orange one first."""
        data, T_tower_base = self._io.data, self.T_base_tower.inverse()
        return [T_tower_base @ Pose(data.xpos[i].copy(), data.xquat[i].copy()) for i in self._blocks]

    def is_out(self, block: Pose) -> bool:
        """Return whether the orange block is off the tower, given its pose in the tower's frame."""
        return math.hypot(*block.position[:2]) > self.parameters.out

    def off(self, blocks: list[Pose]) -> list[float]:
        """Return how far each other block is from where it belongs without the orange one [m]."""
        places = [(0.0, 0.0, (2 * rank + 1) * HALF[2]) for rank in range(BLOCKS - 1)]
        return [float(np.linalg.norm(block.position - place)) for block, place in zip(blocks[1:], places, strict=True)]

    def speed(self) -> float:
        """Return the largest speed of a block of the tower, the orange one not counted [m/s]."""
        return max(float(np.linalg.norm(self._io.data.qvel[i : i + 3])) for i in self._speeds[1:])


def _tilt(pose: Pose) -> float:
    return swing_twist_z(pose.quaternion)[1]


class StrokeFacts(NamedTuple):
    """A stroke of hand and wrist at once with the largest actions, and what it does where nothing is in its way."""

    forward: int = 3
    back: int = 3
    """Steps."""
    advance: tuple[float, float] = (0.015, 0.121)
    """Of the weight along x and y of the tower until it turns back [m]."""
    turn: float = 0.23
    """By how much the hand has turned by then [rad]."""
    rise: float = 0.13
    """Of the weight until the blow, as a share of the block's height over `level`."""
    level: float = PLATE_HEIGHT + 0.04
    """[m]"""
    depth: float = 0.02
    """How far beyond the face of the block the weight would turn back [m]."""


STROKE = StrokeFacts()


def struck_from(block: Pose, further: float = 0.0) -> Pose:
    """Return where the hand begins the stroke that hits a block, base frame.

    Args:
        block: The block; it is struck along its y.
        further: How much further than usual the stroke goes [m].
    """
    s = STROKE
    x, y = s.advance
    end = -HALF[1] - ROD.weight_radius + s.depth + further
    start = np.array([-x, end - y, -s.rise * (block.position[2] - s.level)])
    turned = quat_multiply(block.quaternion, yaw_pose(0.0, 0.0, 0.0, -s.turn).quaternion)
    hand = block.position + quat_rotate(block.quaternion, start) - quat_rotate(turned, np.array([ROD.length, 0.0, 0.0]))
    return Pose(hand, quat_multiply(turned, DOWNWARD))


class WhipOperator(ScriptedOperator):
    """Operator that draws back, strikes with hand and wrist at once, draws back before the blow, and looks.

    Args:
        task: The task, whose true scene it sees.
    """

    further = 0.004
    """By how much each later stroke aims further [m]."""
    ready = 0.0015
    """Distance from where it strikes at which it does [m]."""
    look = 8
    """Steps for which it waits after a stroke."""

    def __init__(self, task: Whip) -> None:
        skill = OperatorSkill(action_noise=0.01, pause=0.01)
        super().__init__(task.spec, skill, InterventionHabit(stall_steps=25, progress=0.003))
        self._task = task

    def begin(self) -> None:
        """Discard the state of the stroke."""
        self._step, self._strokes, self._looked = 0, 0, self.look

    def distance(self, state: RobotState) -> float:
        """Return the distance of the hand to where it strikes, less the way of the block [m]."""
        way = math.hypot(*self._task.blocks()[0].position[:2])
        goal = struck_from(self._task.T_base_target)
        return float(np.linalg.norm(state.T_base_tcp.position - goal.position)) - way

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan where to strike from, the stroke, and the wait after it."""
        here = state.T_base_tcp
        goal = struck_from(self.perceived(self._task.T_base_target), self.further * self._strokes)
        if self._step:
            sign = 1.0 if self._step <= STROKE.forward else -1.0
            self._step = self._step + 1 if self._step < STROKE.forward + STROKE.back else 0
            turn = yaw_pose(0.0, 0.0, 0.0, sign).quaternion
            there = here.position + quat_rotate(here.quaternion, np.array([0.0, -sign, 0.0]))
            return Pose(there, quat_multiply(turn, here.quaternion)), 10.0, 0.0
        if self._looked < self.look:
            self._looked += 1
            return goal, 1.0, 0.0
        still = np.linalg.norm(state.twist[:3]) < 0.03 and abs(state.twist[5]) < 0.1
        if still and np.linalg.norm(goal.position - here.position) < self.ready:
            self._step, self._looked, self._strokes = 1, 0, self._strokes + 1
        return goal, 1.0, 0.0


def add_rod_tool(spec: mujoco.MjSpec, arm: str | None = None) -> None:
    """Add the arm with a hand that holds the rod; the tcp is where it holds it, x along the rod."""
    tool, r, z = add_hand(spec, (0.025, 0.055), arm), ROD, TOOL_LENGTH
    for sign in (-1.0, 1.0):
        visual(tool, BOX, DARK, size=(0.01, 0.0035, 0.035), pos=(0, sign * (0.0085 + 0.0035), z - 0.025))
    visual(tool, CAPSULE, GREY, fromto=(-0.03, 0, z, 0.03, 0, z), size=(0.0085, 0, 0))
    tool.add_site(name="tcp", pos=(0, 0, z), size=(0.002, 0.002, 0.002), group=4)
    add_wrist_camera(tool, z + 0.03, (0.04, 0.05, -0.05), fovy=62, ahead=r.length, up=(0.0, 0.0, -1.0))
    rod = tool.add_body(name="rod", pos=(0, 0, z))
    joint = rod.add_joint(name="rod", type=mujoco.mjtJoint.mjJNT_HINGE, axis=(0, 0, 1))
    omega = 2.0 * np.pi * r.frequency
    joint.stiffness[0], joint.damping[0] = r.inertia * omega**2, 2.0 * r.damping_ratio * r.inertia * omega
    ahead = (r.length, 0, 0)
    rod.add_geom(type=CAPSULE, fromto=(0, 0, 0, *ahead), size=(r.radius, 0, 0), mass=r.mass, rgba=DARK, **STRIKING)
    rod.add_geom(type=SPHERE, pos=ahead, size=(r.weight_radius, 0, 0), mass=r.weight_mass, rgba=WHITE, **STRIKING)


def add_tower(spec: mujoco.MjSpec) -> None:
    """Add a floor at z = 0, the plate (a mocap body with its frame on top), and the blocks, the orange one first."""
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(1, 1, 0.1), rgba=(0, 0, 0, 0), **CONTACT)
    plate = spec.worldbody.add_body(name="tower", mocap=True)
    plate.add_geom(type=BOX, size=(0.03, 0.03, 0.004), pos=(0, 0, -0.004), rgba=PLATE, **WOODEN)
    half = PLATE_HEIGHT / 2 - 0.004
    plate.add_geom(type=BOX, size=(0.02, 0.02, half), pos=(0, 0, -0.008 - half), rgba=DARK, **WOODEN)
    for i in range(BLOCKS):
        block = spec.worldbody.add_body(
            name=f"block{i}", pos=(TOWER[0], TOWER[1], PLATE_HEIGHT + (2 * i + 1) * HALF[2])
        )
        block.add_joint(name=f"block{i}", type=mujoco.mjtJoint.mjJNT_FREE)
        block.add_geom(type=BOX, size=HALF, mass=BLOCK_MASS, rgba=WOOD[i % 2] if i else ORANGE, **WOODEN)


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `whip`."""
    parameters, factor = WhipParameters(), options.world.estimate_error
    parameters = replace(
        parameters,
        estimate_error=parameters.estimate_error * factor,
        estimate_error_z=parameters.estimate_error_z * factor,
        estimate_error_yaw=parameters.estimate_error_yaw * factor,
    )
    spec = new_scene(look_at=(0.58, 0.0, 0.1), distance=0.9)
    spec.option.timestep = 0.001  # of a stroke, and of blocks that are light
    add_rod_tool(spec, options.world.arm)
    add_tower(spec)
    model = spec.compile()
    io = MujocoRobotIO(model, gains=GAINS, simulation=options.simulation)
    task = Whip(io, solve_ik(model, "tcp", START.position, START.quaternion), parameters)
    return simulated_workcell(io, task, WhipOperator(task), options, parameters.dynamics)
