"""Task `pan_flip`: toss the egg out of the pan so that it turns over and lands in it with its other side up.

The hand holds a pan by its handle, and a disc, orange above and white below, lies in it. Nothing can get under it: who
pushes it against the wall gently lifts its edge, and it falls back. It turns over if it meets the wall while pan and
egg move against each other: its edge runs up the bend, the egg leaves the pan turning, and the pan has to be under it
where it comes down.

The egg lies within 15 mm of the middle of the pan, at any yaw; friction differs from episode to episode by up to a
quarter. The policy receives an estimate of the egg that is as late as the cameras' pictures and wrong by up to 4 mm and
4 degrees all along, and by 1 mm and 1 degree more each time, at random.

Success: the egg has been in the air while it turned, and lies in the pan with its white side up, at rest in it for four
steps. The counterpart on a robot is the object flipping of HIL-SERL (Luo et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import mujoco
import numpy as np

from robot_rl.config.randomization import DynamicsConfig
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_from_matrix, quat_from_rotvec, quat_multiply, quat_rotate, yaw_pose
from robot_rl.spec import ArraySpec
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.shapes import DARK, GREY, ORANGE, WHITE, visual
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InterventionHabit, OperatorSkill, ScriptedOperator
from sim.scene import CAMERAS, CONTACT, DOWNWARD, add_hand, add_wrist_camera, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.pose_estimate import drawn_offset


class PanShape(NamedTuple):
    """The pan: a round floor and a wall that bends up from it, of flat pieces."""

    floor: float = 0.07
    """Radius of the floor [m]."""
    bend: float = 0.045
    """Radius of the bend from floor to wall [m]."""
    steepest: float = math.radians(75.0)
    """Slope of the wall at its top [rad]."""
    rings: int = 5
    """Pieces from the floor to the top."""
    sides: int = 16
    """Pieces around."""
    thickness: float = 0.006
    mass: float = 0.5

    def wall(self, slope: float) -> tuple[float, float]:
        """Return distance from the axis and height over the floor where the wall has this slope [m]."""
        return self.floor + self.bend * math.sin(slope), self.bend * (1.0 - math.cos(slope))


class EggShape(NamedTuple):
    """The egg: a disc with a round edge. What touches is a pack of balls in it."""

    ring: float = 0.0255
    """From the middle to the middles of the outer balls [m]."""
    edge: float = 0.0065
    """Radius of the edge, half the thickness [m]."""
    inner: float = 0.0057
    """Radius of the inner balls, which touch edges, but no plane [m]."""
    mass: float = 0.04

    @property
    def radius(self) -> float:
        """Of the whole egg [m]."""
        return self.ring + self.edge


PAN, EGG = PanShape(), EggShape()
RIM = PAN.wall(PAN.steepest)
"""Radius and height of the pan at the top of its wall [m]."""
TOOL_LENGTH = 0.1
"""From the flange to the grip, which is the tcp [m]."""
FLOOR = np.array([0.22, 0.0, RIM[1]])
"""Middle of the pan's floor in the tcp frame, whose z points down [m]."""
START = Pose(np.array([0.43, 0.0, 0.35]), DOWNWARD)
"""Of the tcp, base frame."""
FOLLOWED = 0.3
"""Largest distance of the estimate from the middle of the floor [m]."""
PAN_COLOUR = (0.2, 0.21, 0.24, 1)
SLICK = {"condim": 3, "friction": (0.1, 0.005, 0.0001)} | {
    "solref": (0.002, 1.0),
    "solimp": (0.95, 0.99, 0.0005, 0.5, 2.0),
}
"""Contact of a coated pan: little friction, and no bounce."""
BOX, CAPSULE, SPHERE = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_SPHERE
CYLINDER = mujoco.mjtGeom.mjGEOM_CYLINDER


@dataclass(frozen=True, kw_only=True)
class PanFlipParameters:
    """What determines the difficulty [m, rad]."""

    range: float = 0.015
    """Of the egg about the middle of the pan."""
    estimate_error: float = 0.004
    """Of the position, in the plane of the pan."""
    estimate_error_z: float = 0.0025
    estimate_error_tilt: float = math.radians(4.0)
    jitter: float = 0.001
    """Standard deviation of each estimate, along each axis."""
    jitter_tilt: float = math.radians(1.0)
    flight: float = 0.05
    """Height of the middle of the egg over the pan's floor from which on it can have been tossed."""
    turning: float = math.radians(30.0)
    """Smallest angle from lying on either side at which the egg is turning over."""
    tilt: float = math.radians(15.0)
    """Largest angle between the egg and the pan's floor where it lies."""
    inside: float = 0.09
    """Largest distance of the middle of the egg from the pan's axis."""
    lost: float = 0.05
    """Depth below the pan's floor at which the egg is lost."""
    rest_speed: float = 0.02
    """In the pan [m/s]."""
    hold_steps: int = 4
    dynamics: DynamicsConfig = field(default_factory=lambda: DynamicsConfig(contact_friction=0.25))


SPEC = TaskSpec(
    name="pan_flip",
    instruction="toss the egg out of the pan so that it turns over and lands in the pan with its white side up",
    max_steps=120,
    control_period=0.05,
    workspace=Workspace(low=(-0.12, -0.01, -0.12), high=(0.12, 0.01, 0.14), yaw=0.1, tilt=0.6),
    action_axes=("x", "z", "pitch"),
    action_translation=0.12,
    action_rotation=0.4,
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
"""An action is up to 240 N and 40 Nm for a step, less what damps: the hand comes to 1.1 m/s and 2.9 rad/s."""


class PanFlip:
    """The egg in the pan; success: it has been tossed, and lies with its white side up.

    Args:
        io: The simulated arm with the pan; the free joint is the egg's.
        q_start: Joint angles of the arm at the start [rad].
        parameters: Dimensions.
        spec: What an action is.
    """

    def __init__(
        self, io: MujocoRobotIO, q_start: np.ndarray, parameters: PanFlipParameters, spec: TaskSpec = SPEC
    ) -> None:
        self.spec, self._io, self.q_start, self.parameters = spec, io, q_start, parameters
        self._body, self._tcp = io.model.body("egg").id, io.model.site("tcp").id
        self._joint = int(io.model.joint("egg").qposadr[0])
        self._seed, self._began, self._offset, self._turn = 0, 0, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
        self.tossed, self._held, self._last = False, 0, np.zeros(3)

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the estimate of the egg: from the middle of the pan's floor, tcp axes."""
        return {"state/egg_estimate": ArraySpec((6,), unit="m, 1", scale=(0.04, 0.01, 0.04, 0.5, 0.2, 0.5))}

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the estimate of the egg: where its middle is [m], and which way its orange side looks (a unit vector).

        Both are in tcp axes, from the middle of the pan's floor. It follows the egg, as what tracks it in pictures
        does, and is as late as these: egg and tcp are those of the newest picture.
        """
        del state, T_base_reset
        p, io = self.parameters, self._io
        seen = io.pictured()
        T_tcp_base = Pose(seen.tcp_position, quat_from_matrix(seen.tcp_matrix.reshape(3, 3))).inverse()
        egg = T_tcp_base @ Pose(seen.qpos[self._joint :][:3], seen.qpos[self._joint :][3:7])
        place = egg.position - FLOOR
        place *= min(1.0, FOLLOWED / max(float(np.linalg.norm(place)), 1e-9))
        noise = np.random.default_rng([self._seed, 9, seen.stamp - self._began]).standard_normal(6)
        jitter = quat_from_rotvec(p.jitter_tilt * noise[3:])
        up = quat_rotate(quat_multiply(jitter, self._turn), egg.matrix[:, 2])
        return {"state/egg_estimate": np.concatenate((place + self._offset + p.jitter * noise[:3], up))}

    def reset(self, seed: int) -> None:
        """Draw where the egg lies, and the error of its estimate."""
        p, rng, io = self.parameters, np.random.default_rng([seed, 1]), self._io
        dx, dy = drawn_offset(rng, p.range)
        lies = START @ Pose(FLOOR, DOWNWARD) @ yaw_pose(dx, dy, EGG.edge, rng.uniform(-np.pi, np.pi))
        dx, dy = drawn_offset(rng, p.estimate_error)
        self._offset = np.array([dx, dy, rng.uniform(-p.estimate_error_z, p.estimate_error_z)])
        direction = rng.uniform(0.0, 2.0 * np.pi)
        angle = rng.uniform(-p.estimate_error_tilt, p.estimate_error_tilt)
        self._turn = quat_from_rotvec(angle * np.array([math.cos(direction), math.sin(direction), 0.0]))
        qpos = np.zeros(io.model.nq)
        qpos[: len(self.q_start)] = self.q_start
        qpos[self._joint :][:7] = np.concatenate((lies.position, lies.quaternion))
        io.reset(qpos, seed)
        self._seed, self._began = seed, io.now()
        self.tossed, self._held, self._last = False, 0, self.egg().position

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: tossed, the other side up, in the pan and at rest in it."""
        del state  # the true scene decides, not the sensors
        p, egg = self.parameters, self.egg()
        tilt, height = turned(egg), float(egg.position[2])
        turning = p.turning < tilt < math.pi - p.turning
        if tilt < p.turning and height < RIM[1]:
            self.tossed = False  # it lies as at the start
        self.tossed |= turning and height > p.flight and not self.touching()
        moved, self._last = float(np.linalg.norm(egg.position - self._last)), egg.position
        inside = math.hypot(*egg.position[:2]) < p.inside and 0.0 < height < RIM[1]
        lies = inside and tilt > math.pi - p.tilt and moved < p.rest_speed * SPEC.control_period
        self._held = self._held + 1 if lies and self.tossed else 0
        success = self._held >= p.hold_steps
        failure = "the egg is lost" if height < -p.lost else None
        return Outcome(success, success_reward(success), failure, {"turned": tilt, "height": height})

    def egg(self) -> Pose:
        """Return the pose of the egg in the frame of the pan's floor: x ahead, z up from it, its own z where orange."""
        data = self._io.data
        T_base_tcp = Pose(data.site_xpos[self._tcp].copy(), quat_from_matrix(data.site_xmat[self._tcp].reshape(3, 3)))
        T_base_egg = Pose(data.xpos[self._body].copy(), data.xquat[self._body].copy())
        return (T_base_tcp @ Pose(FLOOR, DOWNWARD)).inverse() @ T_base_egg

    def touching(self) -> bool:
        """Return whether the egg touches anything."""
        model, data = self._io.model, self._io.data
        return bool((model.geom_bodyid[data.contact.geom[: data.ncon]] == self._body).any())


def turned(egg: Pose) -> float:
    """Return how far the egg is turned over from lying with its orange side up [rad], given its pose in the pan."""
    return math.acos(min(max(float(egg.matrix[2, 2]), -1.0), 1.0))


def pitch_of(T_base_tcp: Pose) -> float:
    """Return how far the front of the pan is up [rad]."""
    return math.asin(min(max(float(T_base_tcp.matrix[2, 0]), -1.0), 1.0))


class TossFacts(NamedTuple):
    """A toss of an egg that lies at the back wall: actions along x, z (down) and pitch (front up) of the tcp.

    The pan is pulled out back and up, and driven forward again while the egg slides ahead in it: the back wall meets
    the egg, lifts its edge and throws it up. Found by the cross-entropy method on this simulation.
    """

    lean: float = 0.2
    """How far the front of the pan is up while the egg slides to the back [rad]."""
    back: float = -0.055
    """Where it has arrived there, along x of the pan [m]."""
    settle: int = 4
    """Steps for which it has to rest there."""
    pull: tuple[float, float, float] = (-0.84, -0.6, 0.3)
    drive: tuple[float, float, float] = (0.96, 0.14, -0.02)
    steps: tuple[int, int] = (4, 3)
    """Of pull and drive."""
    under: float = 0.01
    """Where in the pan the egg is to be while it flies, along x [m]."""
    follow: float = 1.1
    """Way of the pan in a step, as a share of the egg's distance from there."""
    give: float = 0.07
    """How far below the start the pan goes to meet it [m]."""
    meet: float = -0.23
    """How far the front of the pan is up when it does [rad]."""
    catch: int = 8
    """Steps."""

    @property
    def duration(self) -> int:
        """Of toss and catch [steps]."""
        return sum(self.steps) + self.catch


TOSS = TossFacts()


def toss_motion(step: int, T_base_tcp: Pose, egg: np.ndarray) -> tuple[float, float, float]:
    """Return the motion along x and z of the tcp [m] and about its y [rad] in one step of toss and catch.

    Args:
        step: Counted from the first of the pull.
        T_base_tcp: Where the hand is.
        egg: Where the egg is, in the frame of the pan's floor [m].
    """
    if step < sum(TOSS.steps):
        x, z, turn = TOSS.pull if step < TOSS.steps[0] else TOSS.drive
        return x * SPEC.action_translation, z * SPEC.action_translation, turn * SPEC.action_rotation
    away, flies = START.position - T_base_tcp.position, egg[2] > RIM[1]
    x = TOSS.follow * (egg[0] - TOSS.under) if flies else away[0]
    return float(x), float(TOSS.give - away[2]), TOSS.meet * flies - pitch_of(T_base_tcp)


class PanFlipOperator(ScriptedOperator):
    """Operator that lets the egg slide to the back wall, tosses it, follows it with the pan, and looks.

    Args:
        task: The task, whose true scene it sees.
    """

    look = 6
    """Steps for which it waits after a toss."""

    def __init__(self, task: PanFlip) -> None:
        skill = OperatorSkill(action_noise=0.01, pause=0.0)  # nobody stops in a toss
        super().__init__(task.spec, skill, InterventionHabit(stall_steps=25, progress=0.003, burst=(40, 60)))
        self._task = task

    def begin(self) -> None:
        """Discard the state of the toss."""
        self._step, self._looked, self._seen, self._rested = 0, self.look, 0.0, 0

    def distance(self, state: RobotState) -> float:
        """Return how far the egg has to turn and, before, to slide to the back [m]."""
        del state
        egg = self._task.egg()
        left = math.pi - turned(egg)
        return 0.03 * left + (max(0.0, egg.position[0] - TOSS.back) if left > 0.5 * math.pi else 0.0)

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan to lean the pan, to level it, the toss, the catch, and the wait after it."""
        egg = self.perceived(self._task.egg())
        if not self._step and egg.position[2] > RIM[1]:  # by a policy
            self._step = sum(TOSS.steps) + 1
        if self._step:
            return self._tossed(state.T_base_tcp, egg), 10.0, 0.0
        over = turned(egg) > 0.5 * math.pi
        if over or self._looked < self.look:
            self._looked += 1
            return Pose(START.position, START.quaternion), 1.0, 0.0
        moved, self._seen = abs(egg.position[0] - self._seen), float(egg.position[0])
        leans = abs(pitch_of(state.T_base_tcp) - TOSS.lean) < 0.02 and np.abs(state.twist[:3]).max() < 0.03
        rests = leans and egg.position[0] < TOSS.back and moved < 0.001
        self._rested = self._rested + 1 if rests else 0
        if self._rested >= TOSS.settle:
            self._step, self._rested = 1, 0
            return self._tossed(state.T_base_tcp, egg), 10.0, 0.0
        return Pose(START.position, quat_multiply(START.quaternion, _pitched(TOSS.lean))), 1.0, 0.0

    def _tossed(self, here: Pose, egg: Pose) -> Pose:
        """Return the goal of the next step of toss and catch."""
        x, z, turn = toss_motion(self._step - 1, here, egg.position)
        self._step = (self._step + 1) % (TOSS.duration + 1)
        if not self._step:
            self._looked = 0
        there = here.position + quat_rotate(here.quaternion, np.array([x, 0.0, z]))
        return Pose(there, quat_multiply(here.quaternion, _pitched(turn)))


def _pitched(angle: float) -> np.ndarray:
    """Return the turn about the tcp's y that brings the front of the pan up [rad]."""
    return quat_from_rotvec(np.array([0.0, angle, 0.0]))


def add_pan_tool(spec: mujoco.MjSpec, arm: str | None = None) -> None:
    """Add the arm with a hand that holds the pan; the tcp is where it holds the handle, x along it, z down."""
    tool, z = add_hand(spec, (0.025, 0.055), arm), TOOL_LENGTH
    for sign in (-1.0, 1.0):
        visual(tool, BOX, DARK, size=(0.01, 0.0035, 0.025), pos=(0, sign * (0.0085 + 0.0035), z - 0.015))
    visual(tool, CAPSULE, GREY, fromto=(-0.03, 0, z, FLOOR[0] - RIM[0] + 0.006, 0, z + 0.004), size=(0.0085, 0, 0))
    tool.add_site(name="tcp", pos=(0, 0, z), size=(0.002, 0.002, 0.002), group=4)
    add_wrist_camera(tool, z + FLOOR[2], (0.03, 0.0, -0.06), fovy=62, ahead=FLOOR[0] - 0.02)
    pan = tool.add_body(name="pan", pos=(FLOOR[0], 0, z + FLOOR[2]), quat=DOWNWARD)
    pan.mass, pan.ipos, pan.explicitinertial = PAN.mass, (-0.04, 0, 0.01), True
    pan.inertia = (1.8e-3, 4e-3, 5e-3)
    half = PAN.thickness / 2
    pan.add_geom(type=CYLINDER, size=(PAN.floor + half, half, 0), pos=(0, 0, -half), rgba=PAN_COLOUR, **SLICK)
    for ring in range(PAN.rings):
        slopes = np.array([ring, ring + 0.5, ring + 1]) * PAN.steepest / PAN.rings
        (r0, h0), (r1, h1), slope = PAN.wall(slopes[0]), PAN.wall(slopes[2]), slopes[1]
        for angle in np.arange(PAN.sides) * 2.0 * np.pi / PAN.sides:
            out = np.array([math.cos(angle), math.sin(angle), 0.0])
            along = math.cos(slope) * out + [0.0, 0.0, math.sin(slope)]
            inwards = -math.sin(slope) * out + [0.0, 0.0, math.cos(slope)]
            turn = quat_from_matrix(np.column_stack((along, np.cross(inwards, along), inwards)))
            middle = out * (r0 + r1) / 2 + [0.0, 0.0, (h0 + h1) / 2] - half * inwards
            size = (math.hypot(r1 - r0, h1 - h0) / 2, r1 * math.tan(math.pi / PAN.sides), half)
            pan.add_geom(type=BOX, size=size, pos=middle, quat=turn, rgba=PAN_COLOUR, **SLICK)


def add_egg(spec: mujoco.MjSpec) -> None:
    """Add a floor at z = 0, and the egg, orange where its z points."""
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=(1, 1, 0.1), rgba=(0, 0, 0, 0), **CONTACT)
    egg = spec.worldbody.add_body(name="egg", pos=START.position)
    egg.add_joint(name="egg", type=mujoco.mjtJoint.mjJNT_FREE)
    pack = ((12, EGG.ring, EGG.edge), (6, EGG.ring / 2, EGG.inner), (1, 0.0, EGG.inner))
    mass = EGG.mass / sum(count for count, *_ in pack)
    for count, ring, radius in pack:
        for angle in np.arange(count) * 2.0 * np.pi / count:
            place = (ring * math.cos(angle), ring * math.sin(angle), 0.0)
            egg.add_geom(type=SPHERE, size=(radius, 0, 0), pos=place, mass=mass, rgba=(0, 0, 0, 0), **SLICK)
    for sign, colour in ((1.0, ORANGE), (-1.0, WHITE)):
        visual(egg, CYLINDER, colour, size=(EGG.radius, EGG.edge / 2, 0), pos=(0, 0, sign * EGG.edge / 2))


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `pan_flip`."""
    return pan_workcell(options, SPEC, PanFlipOperator)


def pan_workcell(
    options: WorkcellOptions, facts: TaskSpec, make_operator: Callable[[PanFlip], PanFlipOperator]
) -> Workcell:
    """Make the simulated workcell of a task with the pan.

    Args:
        options: The options.
        facts: What an action is there.
        make_operator: Makes the scripted operator of the task.
    """
    parameters, factor = PanFlipParameters(), options.world.estimate_error
    parameters = replace(
        parameters,
        estimate_error=parameters.estimate_error * factor,
        estimate_error_z=parameters.estimate_error_z * factor,
        estimate_error_tilt=parameters.estimate_error_tilt * factor,
        jitter=parameters.jitter * factor,
        jitter_tilt=parameters.jitter_tilt * factor,
    )
    spec = new_scene(look_at=(0.6, 0.0, 0.39), distance=1.4)
    spec.option.timestep = 0.001  # of an egg that is light, and that the wall strikes
    add_pan_tool(spec, options.world.arm)
    add_egg(spec)
    model = spec.compile()
    io = MujocoRobotIO(model, gains=GAINS, simulation=options.simulation)
    task = PanFlip(io, solve_ik(model, "tcp", START.position, START.quaternion), parameters, facts)
    return simulated_workcell(io, task, make_operator(task), options, parameters.dynamics)
