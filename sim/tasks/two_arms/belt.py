"""Task `belt`: two arms stretch an elastic belt and put it around two pulleys.

Each arm holds one end of the belt between two jaws, one above the other. The belt is shorter than the way around the
pulleys. Both arms together have to pull it long, bring its two strands down on either side of the pulleys' cones, on
until they snap under the flanges into the grooves, and to let go, so that its ends jump out of the jaws onto the
pulleys. Whoever pulls too little lands on the flanges, whoever pulls too far tears the belt, and whoever lets go too
early, or below the grooves, loses it.

The drive, a plate with both pulleys, lies within 1 cm of its nominal place along x and y and 5 mm along z, its yaw
within 4 degrees. The policy receives an estimate of both pulleys that is wrong by up to 5 mm in the plane, 4 mm in
height and 2 degrees.

Success: the belt lies in the grooves of both pulleys, all around their outer sides, and no jaw touches it, for three
steps. The counterpart on a robot is the timing belt assembly of HIL-SERL (Luo et al. 2024).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.cell_geometry.capsule import Capsule, KeepOutLimits
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import ArmSpec, Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate, yaw_pose
from robot_rl.spec import ArraySpec
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.scene import add_arms, add_hand, add_wrist_camera, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.pose_estimate import drawn_offset
from sim.tasks.two_arms.belt_drive import (
    BELT,
    JAW,
    PULLEY,
    add_belt,
    add_drive,
    add_jaws,
    compile_with_belt,
    loop,
)
from sim.tasks.two_arms.belt_operator import STIFFNESS, BeltOperator
from sim.tasks.two_arms.facing_arms import BASES, LEFT, RIGHT, SIDES, standing, start_angles

DRIVE = np.array([0.5, 0.0, 0.06])
"""Nominal place of the drive: halfway between the pulleys, at the height of the grooves [m]."""
TOOL_LENGTH = 0.14
"""From the flange to the belt [m]."""
HAND_LENGTH = 0.06
START_STRETCH = 0.03
START_HEIGHT = 0.085
"""Of the belt over the nominal grooves [m]."""
HALF = (BELT.length * (1.0 + START_STRETCH) - 2.0 * math.pi * JAW.turn) / 4.0
"""Of the distance between the middles of the belt's turns at the start [m]."""
STARTS = {arm: DRIVE + np.array([0.0, side * (HALF + JAW.turn / 2), START_HEIGHT]) for arm, side in SIDES.items()}
"""Positions of the tcps at the start, in the frame of the scene [m]."""
SETTLE = 4000
"""Most physics steps in which the belt comes to rest between the jaws."""
AT_REST = 1e-3
"""Speed of the belt's points below which it is at rest [m/s]."""
OUTER = np.deg2rad([-75.0, -45.0, -15.0, 15.0, 45.0, 75.0])
"""Directions from the axis of a pulley in which the belt has to lie in its groove, from the outer side."""
FLANKS = np.deg2rad([-90.0, -65.0, 65.0, 90.0])

TOOL = (
    Capsule((0.0, 0.0, -0.08), (0.0, 0.0, 0.0), 0.01),
    Capsule((0.0, 0.0, -0.12), (0.0, 0.0, -0.1), 0.05),
    Capsule((0.0, 0.0, -0.26), (0.0, 0.0, -0.147), 0.05),
    Capsule((-0.088, 0.0, -0.247), (0.0, 0.0, -0.247), 0.06),
)
"""The arm near its tool, in the tcp frame: jaws, hand, flange and wrist."""


@dataclass(frozen=True, kw_only=True)
class BeltParameters:
    """What determines the difficulty [m, rad]."""

    range: float = 0.01
    """Of the drive along x and y."""
    range_z: float = 0.005
    range_yaw: float = math.radians(4.0)
    estimate_error: float = 0.005
    estimate_error_z: float = 0.004
    estimate_error_yaw: float = math.radians(2.0)
    tear: float = 0.27
    """Stretch at which the belt tears."""
    off_radius: float = 0.002
    """Largest difference of a seated belt's axis from its place around the hub, in radius."""
    off_height: float = 0.0025
    """In height: that of a belt that touches a flange, and a little."""
    hold_steps: int = 3
    lost_steps: int = 5
    """Steps after which a belt that nobody holds is given up."""


ARM = ArmSpec(
    workspace=Workspace(low=(-0.045, -0.03, -0.105), high=(0.03, 0.03, 0.02), yaw=0.0, tilt=0.2),
    action_axes=("x", "y", "z"),
    action_translation=0.015,
    gripper=True,
    gripper_open_width=2 * JAW.travel,
    capsules=TOOL,
)


SPEC = TaskSpec.of_arms(
    {arm: standing(arm, ARM) for arm in BASES},
    name="belt",
    instruction="stretch the orange belt with both arms, put it around both pulleys and let go",
    max_steps=150,
    control_period=0.1,
    cameras=("front", "left_wrist", "right_wrist"),
    world=("friction", "estimate_error", "arm", *ARM_WORLD),
    keep_out=KeepOutLimits(distance=0.02, tool_distance=(0.1, 0.3)),
)
GAINS = ImpedanceGains(translation=STIFFNESS, max_translation_error=ARM.action_translation)

_SETTLED: dict[bytes, np.ndarray] = {}
"""Joint positions with the belt at rest, by model and start: they take a second, and a process makes several cells."""


class Belt:
    """The belt, the drive, and the jaws in between.

    Args:
        io: The two simulated arms; behind their joints come the slides of the belt's points.
        q_start: Joint angles of each arm at the start [rad].
        parameters: Dimensions.
    """

    spec = SPEC

    def __init__(self, io: MujocoRobotIO, q_start: Mapping[str, np.ndarray], parameters: BeltParameters) -> None:
        self._io, self.parameters = io, parameters
        model = io.model
        jaws = {model.body(f"{arm}_{side}_finger").id: arm for arm in BASES for side in ("left", "right")}
        self._jaw_of = {geom: jaws[body] for geom, body in enumerate(model.geom_bodyid.tolist()) if body in jaws}
        self._points = {int(model.body(f"belt{i}").geomadr[0]) for i in range(BELT.pieces)}
        self._rest = float(model.flexedge_length0[: BELT.pieces].sum())
        content = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, content)
        key = hashlib.sha256(content.tobytes() + b"".join(q_start[arm].tobytes() for arm in BASES)).digest()
        if key not in _SETTLED:
            _SETTLED[key] = self._settled(q_start)
            _SETTLED[key].flags.writeable = False
        self._q_start = _SETTLED[key]
        self.T_cell_drive = self.T_cell_estimate = Pose.identity()
        self._held = self._lost = 0

    def _settled(self, q_start: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return all joint positions once the belt rests in the closed jaws, the arms being held where they start."""
        model, data = self._io.model, mujoco.MjData(self._io.model)
        data.mocap_pos[0] = DRIVE
        places = {arm: self._io.arms[arm].place for arm in BASES}
        points = np.column_stack((loop(HALF) + DRIVE[:2], np.full(BELT.pieces, DRIVE[2] + START_HEIGHT)))
        data.qpos[-points.size :] = (points - model.body_pos[model.flex_vertbodyid[: BELT.pieces]]).ravel()
        for place in places.values():
            data.qpos[place.finger_joints] = BELT.radius
        for _ in range(SETTLE):
            for arm, place in places.items():
                data.qpos[place.qpos], data.qvel[place.dof] = q_start[arm], 0.0
            mujoco.mj_step1(model, data)
            for place in places.values():
                data.ctrl[place.motors] = data.qfrc_bias[place.dof]
            mujoco.mj_step2(model, data)
            if np.abs(data.qvel).max() < AT_REST and data.time > 0.1:
                break
        return data.qpos.copy()

    # Task.

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the specs of the estimated pulleys, each from its arm's tcp, and of the tools from each other."""
        near = ArraySpec((3,), unit="m", scale=(0.03, 0.01, 0.03))
        return {
            "state/left_pulley_estimate": near,
            "state/right_pulley_estimate": near,
            "state/between_tools": ArraySpec((3,), unit="m", scale=(0.05, 0.02, 0.02)),
        }

    def reset(self, seed: int) -> None:
        """Draw the pose of the drive and the error of its estimate; belt and arms always start alike."""
        p, rng = self.parameters, np.random.default_rng([seed, 1])
        x, y, z = DRIVE + rng.uniform(-1.0, 1.0, 3) * (p.range, p.range, p.range_z)
        yaw = rng.uniform(-p.range_yaw, p.range_yaw)
        self.T_cell_drive = yaw_pose(x, y, z, yaw)
        dx, dy = drawn_offset(rng, p.estimate_error)
        dz, turn = rng.uniform(-1.0, 1.0, 2) * (p.estimate_error_z, p.estimate_error_yaw)
        self.T_cell_estimate = yaw_pose(x + dx, y + dy, z + dz, yaw + turn)
        self._io.data.mocap_pos[0] = self.T_cell_drive.position
        self._io.data.mocap_quat[0] = self.T_cell_drive.quaternion
        self._io.reset(self._q_start, seed, gripper_width=0.0)
        self._held = self._lost = 0

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the middles of the estimated grooves, each in its arm's tcp frame, and the right tcp in the left."""
        del T_base_reset  # they are relative to the tcps
        tools = {arm: BASES[arm] @ state.arms[arm].T_base_tcp for arm in BASES}

        def seen(point: np.ndarray, arm: str) -> np.ndarray:
            return quat_rotate(quat_conjugate(tools[arm].quaternion), point - tools[arm].position)

        pulleys = {f"state/{arm}_pulley_estimate": seen(pulley_of(self.T_cell_estimate, arm), arm) for arm in BASES}
        return pulleys | {"state/between_tools": seen(tools[RIGHT].position, LEFT)}

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: in both grooves and in no jaws, for consecutive steps."""
        del state  # the true scene decides, not the sensors
        p, stretch = self.parameters, self.stretch()
        seated, held = sum(self.seated(arm) for arm in BASES), any(self.holds(arm) for arm in BASES)
        self._held = self._held + 1 if seated == len(BASES) and not held else 0
        self._lost = 0 if held or seated == len(BASES) else self._lost + 1
        success = self._held >= p.hold_steps
        failure = "the belt tore" if stretch > p.tear else None
        if self._lost >= p.lost_steps:
            failure = "the belt is lost"
        return Outcome(
            success,
            success_reward(success),
            None if success else failure,
            metrics={"stretch": stretch, "seated": float(seated)},
        )

    # The true scene.

    def stretch(self) -> float:
        """Return by how much the belt is longer than at rest, as a share of that."""
        return float(self._io.data.flexedge_length[: BELT.pieces].sum()) / self._rest - 1.0

    def belt(self) -> np.ndarray:
        """Return points of the belt's axis, in the frame of the drive [m]. Shape (pieces, 3)."""
        return (self._io.data.flexvert_xpos[: BELT.pieces] - self.T_cell_drive.position) @ self.T_cell_drive.matrix

    def tool(self, arm: str) -> np.ndarray:
        """Return the tcp of an arm in the frame of the drive [m]. Shape (3,)."""
        return (self.T_cell_drive.inverse() @ BASES[arm] @ self._io.arms[arm].tcp()).position

    def holds(self, arm: str) -> bool:
        """Return whether a jaw of an arm touches the belt."""
        data = self._io.data
        pairs = data.contact.geom[: data.ncon].tolist()
        return any(b in self._points and self._jaw_of.get(a) == arm for pair in pairs for a, b in (pair, pair[::-1]))

    def seated(self, arm: str) -> bool:
        """Return whether the belt lies in the groove of an arm's pulley, all around its outer side."""
        return self._in_groove(arm, OUTER)

    def caught(self, arm: str) -> bool:
        """Return whether both strands are under the flange of an arm's pulley; its jaws may hold the end still."""
        return self._in_groove(arm, FLANKS)

    def _in_groove(self, arm: str, directions: np.ndarray) -> bool:
        axis = np.array([0.0, SIDES[arm] * PULLEY.apart / 2, 0.0])
        around = (self.belt() - axis) * (1.0, SIDES[arm], 1.0)
        radius, height = crossed(around, directions)
        p, seat = self.parameters, PULLEY.hub + BELT.radius
        return bool((np.abs(radius - seat) < p.off_radius).all() and (np.abs(height) < p.off_height).all())


def pulley_of(T_cell_drive: Pose, arm: str) -> np.ndarray:
    """Return the middle of the groove of an arm's pulley, in the frame of the scene [m]."""
    return T_cell_drive.position + T_cell_drive.matrix @ [0.0, SIDES[arm] * PULLEY.apart / 2, 0.0]


def crossed(loop_points: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where a closed line crosses vertical half-planes that begin at the z axis.

    Args:
        loop_points: Its corners [m], shape (n, 3).
        directions: Of the half-planes, from y towards -x [rad], shape (m,).

    Returns:
        Distance from the axis and height [m], shape (m,) each; NaN where it is not crossed exactly once.
    """
    out = np.column_stack((-np.sin(directions), np.cos(directions)))
    side = np.column_stack((-np.cos(directions), -np.sin(directions)))
    ahead, beside, height = loop_points[:, :2] @ out.T, loop_points[:, :2] @ side.T, loop_points[:, 2]
    after = np.roll(beside, -1, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = beside / (beside - after)
        radius = ahead + share * (np.roll(ahead, -1, axis=0) - ahead)
    hit = ((beside < 0.0) != (after < 0.0)) & (radius > 0.0)
    first, columns = hit.argmax(axis=0), np.arange(len(directions))
    once = np.where(hit.sum(axis=0) == 1, 1.0, np.nan)
    rise = np.roll(height, -1)[first] - height[first]
    return once * radius[first, columns], once * (height[first] + share[first, columns] * rise)


def add_jaw_tool(spec: mujoco.MjSpec, arm: str | None = None) -> None:
    """Add the arm with a hand that has two jaws; the tcp is between them."""
    tool = add_hand(spec, (0.03, 0.03), arm)
    add_jaws(spec, tool, HAND_LENGTH, TOOL_LENGTH)
    add_wrist_camera(tool, TOOL_LENGTH, (0.075, 0.06, 0.03), fovy=62)


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `belt`."""
    parameters, factor = BeltParameters(), options.world.estimate_error
    parameters = replace(
        parameters,
        estimate_error=parameters.estimate_error * factor,
        estimate_error_z=parameters.estimate_error_z * factor,
        estimate_error_yaw=parameters.estimate_error_yaw * factor,
    )
    spec = new_scene(look_at=(0.5, 0.0, 0.11), distance=1.1)
    spec.option.timestep = 0.001  # of a belt whose points are light
    add_arms(spec, BASES, add_jaw_tool, options.world.arm)
    add_drive(spec)
    add_belt(spec, DRIVE + np.array([0.0, 0.0, START_HEIGHT]))
    io = MujocoRobotIO(
        compile_with_belt(spec),
        gains=GAINS,
        simulation=options.simulation,
        finger_open_width=2 * JAW.travel,
        arms=tuple(BASES),
    )
    task = Belt(io, start_angles(STARTS, add_jaw_tool, options.world.arm), parameters)
    return simulated_workcell(io, task, BeltOperator(task, BASES), options)
