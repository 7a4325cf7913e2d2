"""Task `cable_clip`: press a cable sideways into a clip whose jaws snap behind it.

The cable is 6 mm thick and soft. One end is fixed to an anchor, the hand holds the other, and the clip lies between
them. The mouth of the clip opens to the side and is 2 mm narrower than the cable: whoever comes from above lies on the
upper jaw. The cable has to be brought down beside the clip to the height of its mouth, and is then pushed in, which
takes a taut cable; the jaws give way and snap behind it.

The clip lies within 1 cm of its nominal place along x and y and 8 mm along z, its yaw within 10 degrees. The anchor
lies up to 8 mm from its nominal place beside the clip, which the policy is not told. It receives an estimate of the
clip that is wrong by up to 4 mm in the plane, 4 mm in height and 4 degrees.

Success: the cable lies behind both jaws over the whole length of the clip, and the jaws have closed, for two steps.
The counterpart on a robot is the cable clipping of HIL-SERL (Luo et al. 2024).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import mujoco
import numpy as np

from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_multiply, quat_rotate
from robot_rl.spec import ArraySpec
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.shapes import DARK, ORANGE, WHITE, visual
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InterventionHabit, OperatorSkill, ScriptedOperator
from sim.scene import CAMERAS, CONTACT, DOWNWARD, add_hand, add_wrist_camera, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.insertion import Insertion, InsertionParameters
from sim.tasks.pose_estimate import seen_from_tcp


class CableShape(NamedTuple):
    """The cable: a chain of capsules on ball joints, each with the stiffness of a rod."""

    radius: float = 0.003
    segments: int = 12
    segment: float = 0.009
    """Length of one [m]."""
    mass: float = 0.045
    """[kg/m]"""
    bending: float = 3e-4
    """Bending stiffness EI [Nm^2], as of soft silicone; twisting, too."""
    damping: float = 8e-4
    """Of each joint [Nms/rad]."""
    armature: float = 1e-6
    """Inertia added to each joint [kg m^2]; with its own, contact of this softness gives way by tenths of a mm."""

    @property
    def length(self) -> float:
        """From the hand to the anchor [m]."""
        return self.segments * self.segment


class ClipShape(NamedTuple):
    """Dimensions of the clip [m]; its frame has the origin in the middle of the mouth, x out of it, y along it."""

    half_length: float = 0.005
    gap: float = 0.004
    """Of the mouth, between the noses of the jaws."""
    nose_radius: float = 0.0015
    seat: float = 0.0033
    """From the mouth to the axis of a cable that lies at the back."""
    thickness: float = 0.002
    """Of a jaw."""
    stiffness: float = 1500.0
    """Of the spring of a jaw [N/m]."""
    preload: float = 0.001
    """By which the spring is bent when the jaw rests."""
    height: float = 0.03
    """Of the mouth over the plate that the clip stands on."""


CABLE, CLIP = CableShape(), ClipShape()
ANCHOR = np.array([-CLIP.seat, -0.08, 0.0])
"""Nominal place of the anchor in the clip's frame: on the line on which a cable in the clip lies [m]."""
ANCHOR_RANGE = np.array([0.008, 0.002, 0.004])
"""Largest distance of the anchor from there along each axis [m]."""
HAND = 0.009
"""Half the width of the fingers along the cable: where it leaves them, from the tcp [m]."""
TOOL_LENGTH = 0.14
"""From the flange to the axis of the cable between the fingers [m]."""
REACH = ANCHOR[1] + CABLE.length + HAND
"""Along y, where the tcp is when the cable is straight and taut, clip's frame [m]."""
CLIP_Y = -0.013
"""Of the nominal clip in the base frame; that of the tcp at the start is 0 [m]."""
BRING, SETTLE = 200, 4000
"""Physics steps at reset: in which the cable's end is brought to the anchor, and the most in which it comes to rest."""
AT_REST = 1e-3
"""Joint speed below which the cable is at rest [rad/s]."""
STATIC = {**CONTACT, "contype": 0, "conaffinity": 3, "friction": (0.2, 0.005, 0.0001)}
"""Contact of what stands on the plate: with the hand, whose `contype` is 1, and with the cable, whose is 2."""
FIRM = {"contype": 2, "conaffinity": 0, "condim": 4, "priority": 1, "friction": (0.2, 0.005, 0.0001)} | {
    "solref": (0.004, 1.0),
    "solimp": (0.998, 0.9995, 0.0005, 0.5, 2.0),
}
"""Contact of the cable, whose segments are light."""
PLATE = (0.16, 0.24, 0.38, 1)
BOX, CAPSULE = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CAPSULE


@dataclass(frozen=True, kw_only=True)
class CableClipParameters(InsertionParameters):
    """Those of `cable_clip` [m, rad]; the hole is the mouth of the clip, and depth is behind it."""

    clearance: float = 0.0002
    """Between a jaw and a cable that lies in the clip."""
    chamfer: float = 0.0
    block_height: float = 0.06
    start_height: float = 0.035
    hole_range: float = 0.01
    height_range: float = 0.008
    estimate_error: float = 0.004
    estimate_error_z: float = 0.004
    estimate_error_yaw: float = float(np.deg2rad(4.0))
    success_depth: float = 0.0025
    success_opening: float = 0.0003
    """Largest opening of a jaw that has closed."""


SPEC = TaskSpec(
    name="cable_clip",
    instruction="press the cable sideways into the clip until its jaws have snapped behind it",
    max_steps=120,
    control_period=0.1,
    workspace=Workspace(low=(-0.05, -0.05, -0.08), high=(0.06, 0.045, 0.02), yaw=0.4, tilt=0.2),
    action_axes=("x", "y", "z", "yaw"),
    cameras=CAMERAS,
    world=("friction", "tilt", "estimate_error", "arm", *ARM_WORLD),
)


class CableClip(Insertion):
    """The cable behind the jaws of the clip.

    Args:
        io: The simulated arm with the cable; mocap bodies are the clip and the anchor.
        q_start: Joint angles of the start [rad].
        spec: Facts of the task.
        parameters: Dimensions.
    """

    def __init__(self, io: MujocoRobotIO, q_start: np.ndarray, spec: TaskSpec, parameters: CableClipParameters) -> None:
        model = io.model
        self._hanging, self._arm_joints = mujoco.MjData(model), len(q_start)
        straight = self._hanging.qpos.copy()
        straight[: len(q_start)] = q_start
        super().__init__(io, straight, spec, parameters)
        self._y = CLIP_Y
        self._height_range, self._opening = parameters.height_range, parameters.success_opening
        self._chain = [model.body(f"cable{i}").id for i in range(CABLE.segments + 1)]

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the estimate of the clip in the tcp frame."""
        return {"state/clip_estimate": ArraySpec((4,), unit="m, rad", scale=(0.01, 0.02, 0.01, 0.1))}

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the estimate of the clip: its mouth in the tcp frame [m], and the turn of the hand to it [rad]."""
        del T_base_reset  # the estimate is relative to the tcp itself
        return {"state/clip_estimate": seen_from_tcp(state, self.T_base_estimate)}

    def placed(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the clip's height and the anchor's place, and let the cable come to rest between anchor and hand."""
        up = np.array([0.0, 0.0, rng.uniform(-self._height_range, self._height_range)])
        clip = Pose(self.T_base_hole.position + up, self.T_base_hole.quaternion)
        self.T_base_hole = clip
        self.T_base_estimate = Pose(self.T_base_estimate.position + up, self.T_base_estimate.quaternion)
        data = self._io.data
        data.mocap_pos[0] = clip.position
        data.mocap_pos[1] = clip.position + quat_rotate(
            clip.quaternion, ANCHOR + rng.uniform(-ANCHOR_RANGE, ANCHOR_RANGE)
        )
        data.mocap_quat[1] = clip.quaternion
        return self._at_rest(data.mocap_pos, data.mocap_quat)

    def _at_rest(self, positions: np.ndarray, quaternions: np.ndarray) -> np.ndarray:
        """Return all joint positions once the cable hangs at rest, the arm being held where it starts."""
        model, data = self._io.model, self._hanging
        mujoco.mj_resetData(model, data)
        data.qpos[:] = self.q_start
        mujoco.mj_forward(model, data)
        end = data.xpos[self._chain[-1]].copy()
        data.mocap_pos[:], data.mocap_quat[:] = positions, quaternions
        arm = self._arm_joints
        for step in range(1, SETTLE + 1):
            data.mocap_pos[1] = end + min(1.0, step / BRING) * (positions[1] - end)
            mujoco.mj_step1(model, data)
            data.ctrl[:arm] = data.qfrc_bias[:arm]
            mujoco.mj_step2(model, data)
            data.qpos[:arm], data.qvel[:arm] = self.q_start[:arm], 0.0
            if step > BRING and np.abs(data.qvel).max() < AT_REST:
                break
        return data.qpos.copy()

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: behind closed jaws for consecutive steps."""
        del state  # the true scene decides, not the sensors
        depth, lateral = self.clipped()
        p = self.parameters
        inside = depth >= p.success_depth and lateral <= p.clearance + 0.0005
        self._held = self._held + 1 if inside and self.openings().max() < self._opening else 0
        success = self._held >= p.success_steps
        return Outcome(success, success_reward(success), metrics={"depth": depth, "lateral_error": lateral})

    def openings(self) -> np.ndarray:
        """Return how far each jaw is open [m], upper and lower. Shape (2,)."""
        return np.array([self._io.data.joint(name).qpos[0] for name in ("upper_jaw", "lower_jaw")])

    def cable(self) -> np.ndarray:
        """Return points of the cable's axis from hand to anchor, base frame [m]. Shape (n, 3)."""
        return self._io.data.xpos[self._chain].copy()

    def clipped(self) -> tuple[float, float]:
        """Return how deep the cable is behind the mouth where it is least so, and its largest distance off [m]."""
        ends = [crossing(self.T_base_hole, self.cable(), sign * (CLIP.half_length - 0.001)) for sign in (-1.0, 1.0)]
        return -max(x for x, _ in ends), max(abs(z) for _, z in ends)


def crossing(clip: Pose, cable: np.ndarray, y: float) -> tuple[float, float]:
    """Return where a cable crosses a plane across a clip.

    Args:
        clip: Pose of the clip in the base frame.
        cable: Points of the cable, base frame [m], shape (n, 3).
        y: Of the plane, clip's frame [m].

    Returns:
        x and z in the clip's frame [m]; of the point that is nearest to the plane, where none crosses it.
    """
    points = (cable - clip.position) @ clip.matrix
    before, after = points[:-1, 1] - y, points[1:, 1] - y
    crossed = np.flatnonzero(before * after <= 0.0)
    if not crossed.size:
        x, _, z = points[np.argmin(np.abs(points[:, 1] - y))].tolist()
        return x, z
    i = crossed[0]
    share = before[i] / (before[i] - after[i]) if before[i] != after[i] else 0.0
    x, _, z = (points[i] + share * (points[i + 1] - points[i])).tolist()
    return x, z


class ClippingOperator(ScriptedOperator):
    """Operator that brings the cable down beside the clip, to the height of its mouth, pulls it taut and pushes it in.

    Args:
        task: The task, whose true scene it sees.
    """

    beside = 0.011
    """Distance of the cable from the mouth while it is lowered [m]."""
    level = 0.0012
    """Difference in height below which it begins to push [m]."""
    slack, taut, pull = 0.003, 0.002, 0.006
    """Short of a straight cable once it is in, and beyond it while it is lowered and while it is pushed [m]."""
    patience = 20
    """Steps of pushing after which it backs out and looks again."""

    def __init__(self, task: CableClip) -> None:
        skill, habit = OperatorSkill(yaw_error=0.02), InterventionHabit(progress=0.001)
        super().__init__(task.spec, skill, habit)
        self._task = task

    def begin(self) -> None:
        """Discard the state of the push."""
        self._pushed = 0

    def distance(self, state: RobotState) -> float:
        """Return the distance of the cable to its place in the clip [m]."""
        del state  # the cable counts, not the hand
        x, z = crossing(self._task.T_base_hole, self._task.cable(), 0.0)
        return float(np.hypot(x + CLIP.seat, z))

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan a goal beside the clip, then at the height of its mouth, then in it."""
        clip = self.perceived(self._task.T_base_hole)
        x, z = crossing(clip, self._task.cable(), 0.0)
        here = (clip.inverse() @ state.T_base_tcp).position
        beside = x > 0.6 * self.beside
        if self._pushed > self.patience or abs(z) > CABLE.radius:
            self._pushed = 0
        if x < -0.5 * CLIP.seat and abs(z) < CABLE.radius:  # behind the jaws
            goal = np.array([-CLIP.seat, REACH - self.slack, 0.0])
        elif self._pushed or (beside and abs(z) < self.level):
            self._pushed += 1
            goal = np.array([here[0] - 0.015, REACH + self.pull, here[2] - z])
        else:
            down = here[2] - z if beside else here[2]
            goal = np.array([here[0] + self.beside - x, REACH + self.taut, down])
        attitude = quat_multiply(clip.quaternion, DOWNWARD)
        return Pose(clip.position + quat_rotate(clip.quaternion, goal), attitude), 1.0, 0.0


def add_cable_tool(spec: mujoco.MjSpec, arm: str | None = None) -> None:
    """Add the arm with a hand that holds the cable; the tcp is its axis between the fingers, y along it."""
    tool, tip, c = add_hand(spec, (0.055, 0.025), arm), TOOL_LENGTH, CABLE
    for sign in (-1.0, 1.0):
        tool.add_geom(
            type=BOX,
            size=(0.0035, HAND, 0.043),
            pos=(sign * (c.radius + 0.0035), 0, tip + 0.006 - 0.043),
            rgba=DARK,
            mass=0,
            **{**CONTACT, "contype": 1, "conaffinity": 0},
        )
    visual(tool, CAPSULE, ORANGE, fromto=(0, HAND, tip, 0, -HAND - 0.004, tip), size=(c.radius, 0, 0))
    tool.add_site(name="tcp", pos=(0, 0, tip), size=(0.002, 0.002, 0.002), group=4)
    add_wrist_camera(tool, tip, (0.075, 0.045, 0.05), fovy=55)
    body, place = tool, (0.0, HAND, tip)
    for i in range(c.segments):
        body = body.add_body(name=f"cable{i}", pos=place)
        joint = body.add_joint(name=f"cable{i}", type=mujoco.mjtJoint.mjJNT_BALL)
        joint.stiffness[0], joint.damping[0], joint.armature = c.bending / c.segment, c.damping, c.armature
        body.add_geom(
            type=CAPSULE,
            fromto=(0, 0, 0, 0, c.segment, 0),
            size=(c.radius, 0, 0),
            mass=c.mass * c.segment,
            rgba=ORANGE,
            **FIRM,
        )
        place = (0.0, c.segment, 0.0)
    body.add_body(name=f"cable{c.segments}", pos=place)


def add_clip(spec: mujoco.MjSpec, clearance: float) -> None:
    """Add the mocap bodies: `clip`, a plate with the clip on it, and `anchor`, to which the cable is fixed."""
    clip, k, c = spec.worldbody.add_body(name="clip", mocap=True), CLIP, CABLE
    inner = c.radius + clearance
    back = k.seat + c.radius + 0.0001
    clip.add_geom(type=BOX, size=(0.05, 0.07, 0.003), pos=(0, -0.035, -k.height - 0.003), rgba=PLATE, **STATIC)
    visual(clip, BOX, DARK, size=(0.046, 0.066, 0.02), pos=(0, -0.035, -k.height - 0.026))
    top = inner + k.thickness
    clip.add_geom(
        type=BOX,
        size=(0.003, k.half_length, (top + k.height) / 2),
        pos=(-back - 0.003, 0, (top - k.height) / 2),
        rgba=DARK,
        **STATIC,
    )
    for name, sign in (("upper_jaw", 1.0), ("lower_jaw", -1.0)):
        jaw = clip.add_body(name=name)
        joint = jaw.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=(0, 0, sign))
        joint.range, joint.limited, joint.armature = (0.0, 0.004), True, 0.02
        joint.solref_limit, joint.solimp_limit = (0.004, 1.0), (0.99, 0.999, 0.001, 0.5, 2.0)
        joint.stiffness[0], joint.springref, joint.damping[0] = k.stiffness, -k.preload, 6.0
        jaw.mass, jaw.inertia, jaw.explicitinertial = 0.005, (1e-7, 1e-7, 1e-7), True
        nose, end = sign * (k.gap / 2 + k.nose_radius), k.half_length - k.nose_radius
        jaw.add_geom(
            type=CAPSULE, fromto=(0, -end, nose, 0, end, nose), size=(k.nose_radius, 0, 0), rgba=WHITE, **STATIC
        )
        jaw.add_geom(
            type=BOX,
            size=(back / 2, k.half_length, k.thickness / 2),
            pos=(-back / 2, 0, sign * (inner + k.thickness / 2)),
            rgba=WHITE,
            **STATIC,
        )
    anchor = spec.worldbody.add_body(name="anchor", mocap=True)
    hand_only = {**STATIC, "conaffinity": 1}
    half = k.height / 2 + 0.006
    anchor.add_geom(type=BOX, size=(0.008, 0.01, half), pos=(0, -0.01, 0.008 - half), rgba=DARK, **hand_only)
    visual(anchor, CAPSULE, ORANGE, fromto=(0, 0, 0, 0, -0.035, -0.004), size=(c.radius, 0, 0))
    weld = spec.add_equality(
        name="anchor",
        type=mujoco.mjtEq.mjEQ_WELD,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        name1="anchor",
        name2=f"cable{c.segments}",
        data=(0, 0, 0, 0, 0, 0, *DOWNWARD, 1.0, 0),
    )
    weld.solref, weld.solimp = (0.004, 1.0), (0.99, 0.999, 0.001, 0.5, 2.0)


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `cable_clip`."""
    parameters = CableClipParameters().in_world(options.world)
    spec = new_scene(look_at=(0.5, -0.02, 0.07), distance=0.8)
    spec.visual.quality.numslices, spec.visual.quality.numstacks = 14, 8  # of round shapes, of which there are many
    add_cable_tool(spec, options.world.arm)
    add_clip(spec, parameters.clearance)
    model = spec.compile()
    io = MujocoRobotIO(model, simulation=options.simulation, sensing=parameters.sensing)
    start = np.array([0.5, 0.0, parameters.block_height + parameters.start_height])
    task = CableClip(io, solve_ik(model, "tcp", start, DOWNWARD), SPEC, parameters)
    return simulated_workcell(io, task, ClippingOperator(task), options, parameters.dynamics)
