"""Tasks `peg_insert` and `peg_hard`: insert a square peg into a hole whose pose is only roughly known.

They are one task with other numbers (`PegInsertParameters`). Of `peg_insert`:
The hole lies within 2 cm and 10 degrees of its nominal pose. The policy receives an estimate with an error of up to
2 mm, drawn once per episode. The error exceeds clearance plus chamfer, so that moving straight down at the estimate
mostly fails and contact information is needed.

`peg_hard` has 0.2 mm clearance, an estimate that is wrong by up to 3 mm and 5 degrees, a board that leans by up to
2 degrees, friction and stiffness that differ by episode, and a force sensor with bias and drift.

Success: depth, lateral error, yaw and tilt in the hole's frame are inside their limits for two steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from robot_rl.config.randomization import DynamicsConfig
from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_multiply, swing_twist_z, yaw_pose
from robot_rl.spec import ArraySpec
from sim.arm import solve_ik
from sim.card import Card, add_cards
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InsertionOperator, ScriptedOperator
from sim.scene import CAMERAS, DOWNWARD, add_hole_block, add_peg_tool, new_scene
from sim.sensing import Sensing
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.pose_estimate import drawn_offset, seen_from_tcp, tilted
from sim.tasks.searching_operator import SearchingOperator


@dataclass(frozen=True)
class PegInsertParameters:
    """Dimensions that determine the difficulty of the task [m, rad]."""

    clearance: float = 0.0005
    chamfer: float = 0.00075
    block_half_width: float = 0.1
    block_height: float = 0.06
    hole_range: float = 0.02
    hole_yaw_range: float = float(np.deg2rad(10.0))
    start_height: float = 0.034
    estimate_error: float = 0.002
    """Largest lateral error of the estimate; uniform over the disc."""
    estimate_error_z: float = 0.0005
    estimate_error_yaw: float = float(np.deg2rad(1.0))
    success_depth: float = 0.025
    success_yaw: float = float(np.deg2rad(4.0))
    success_tilt: float = float(np.deg2rad(4.0))
    success_steps: int = 2
    tilt: float = 0.0
    """Of the hole's axis, in a direction that is drawn for each episode and not part of the estimate."""
    tilt_range: float = 0.0
    """Largest further tilt, drawn for each episode."""
    dynamics: DynamicsConfig = field(default_factory=DynamicsConfig)
    """Least widths of the draws of friction and stiffness; `randomization.dynamics` may widen them."""
    sensing: Sensing = field(default_factory=Sensing)
    """Delay, noise, bias and drift of the sensors."""

    @property
    def success_lateral(self) -> float:
        """Largest distance of the tip from the hole's axis: the clearance and half a millimetre."""
        return self.clearance + 0.0005


SPEC = TaskSpec(
    name="peg_insert",
    instruction="insert the square peg into the hole of the block",
    max_steps=100,
    control_period=0.1,
    workspace=Workspace(low=(-0.05, -0.05, -0.09), high=(0.05, 0.05, 0.02), yaw=0.35, tilt=0.2),
    action_axes=("x", "y", "z", "yaw"),
    cameras=CAMERAS,
    world=("clearance", "friction", "tilt", "estimate_error", "card", *ARM_WORLD),
)

CARDS = (
    Card((0.1, 0.05), yaw_pose(0.064, 0.0, 0.0005, np.deg2rad(60.0))),
    Card((0.036, 0.022), yaw_pose(0.008, -0.036, 0.0005, np.deg2rad(-75.0))),
)
"""On the block, beside the hole: one that the front camera can read, and one for the wrist camera."""


HARD = PegInsertParameters(
    clearance=0.0002,
    chamfer=0.0005,
    estimate_error=0.003,
    estimate_error_yaw=float(np.deg2rad(5.0)),
    tilt_range=float(np.deg2rad(2.0)),
    dynamics=DynamicsConfig(contact_friction=0.4, stiffness=0.3),
    sensing=Sensing(wrench_bias=1.0, wrench_drift=0.1),
)
# All axes: with x, y, z and yaw alone, the scripted operator, which knows the hole, inserts 0 of 30 pegs at 2 degrees
# of tilt (30 of 30 with all axes), because the upright peg wedges at 12 mm depth.
HARD_SPEC = replace(
    SPEC,
    name="peg_hard",
    max_steps=150,
    workspace=replace(SPEC.workspace, tilt=0.1),
    action_axes=("x", "y", "z", "roll", "pitch", "yaw"),
)


class PegInsert:
    """Scene, reset, estimate and success condition.

    Args:
        io: The simulated arm with the peg.
        q_start: Joint angles of the start pose [rad].
        spec: Facts of the task.
        parameters: Dimensions.
    """

    def __init__(self, io: MujocoRobotIO, q_start: np.ndarray, spec: TaskSpec, parameters: PegInsertParameters) -> None:
        self._io, self.q_start, self.spec, self.parameters = io, q_start, spec, parameters
        self._x, self._y = 0.5, 0.0
        self.T_base_hole = Pose.identity()
        self.T_base_estimate = Pose.identity()
        self._held = 0

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the estimate of the hole in the tcp frame."""
        return {"state/hole_estimate": ArraySpec((4,), unit="m, rad", scale=(0.005, 0.005, 0.01, 0.05))}

    def reset(self, seed: int) -> None:
        """Draw the hole's pose and the error of its estimate; the arm always starts at the same pose."""
        p, rng = self.parameters, np.random.default_rng([seed, 1])
        x, y = np.array((self._x, self._y)) + rng.uniform(-p.hole_range, p.hole_range, 2)
        yaw = rng.uniform(-p.hole_yaw_range, p.hole_yaw_range)
        self.T_base_hole = tilted(yaw_pose(x, y, p.block_height, yaw), p.tilt, p.tilt_range, seed)
        dx, dy = drawn_offset(rng, p.estimate_error)
        self.T_base_estimate = yaw_pose(
            x + dx,
            y + dy,
            p.block_height + rng.uniform(-p.estimate_error_z, p.estimate_error_z),
            yaw + rng.uniform(-p.estimate_error_yaw, p.estimate_error_yaw),
        )
        self._io.data.mocap_pos[0] = self.T_base_hole.position
        self._io.data.mocap_quat[0] = self.T_base_hole.quaternion
        self._io.reset(self.q_start, seed)
        self._held = 0

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the estimate of the hole: its mouth in the tcp frame [m], and the rotation of the peg to it [rad]."""
        del T_base_reset  # the estimate is relative to the tcp itself
        return {"state/hole_estimate": seen_from_tcp(state, self.T_base_estimate)}

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: depth, lateral error, yaw and tilt for two consecutive steps."""
        del state  # the true scene decides, not the sensors
        p = self.parameters
        depth, lateral, yaw, tilt = self.insertion()
        inside = (
            depth >= p.success_depth
            and lateral <= p.success_lateral
            and abs(yaw) <= p.success_yaw
            and tilt <= p.success_tilt
        )
        self._held = self._held + 1 if inside else 0
        success = self._held >= p.success_steps
        return Outcome(success, success_reward(success), metrics={"depth": depth, "lateral_error": lateral})

    def insertion(self) -> tuple[float, float, float, float]:
        """Return the true tip in the hole's frame: depth [m], lateral error [m], yaw [rad] and tilt [rad]."""
        T_hole_tcp = self.T_base_hole.inverse() @ self._io.controller.pose()
        x, y, z = T_hole_tcp.position.tolist()
        yaw, tilt = swing_twist_z(quat_multiply(T_hole_tcp.quaternion, DOWNWARD))
        return -z, math.hypot(x, y), yaw, tilt


def make_hard(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of the hard task; the entry point `peg_hard`."""
    return make(options, HARD, HARD_SPEC)


def make(
    options: WorkcellOptions, parameters: PegInsertParameters | None = None, task_spec: TaskSpec = SPEC
) -> Workcell:
    """Make the simulated workcell of this task; the entry point `peg_insert`."""
    parameters, world = parameters or PegInsertParameters(), options.world
    error = world.estimate_error
    parameters = replace(
        parameters,
        clearance=parameters.clearance * world.clearance,
        tilt=parameters.tilt + world.tilt,
        estimate_error=parameters.estimate_error * error,
        estimate_error_z=parameters.estimate_error_z * error,
        estimate_error_yaw=parameters.estimate_error_yaw * error,
    )
    spec = new_scene()
    add_peg_tool(spec)
    add_hole_block(
        spec,
        half_width=parameters.block_half_width,
        height=parameters.block_height,
        clearance=parameters.clearance,
        chamfer=parameters.chamfer,
    )
    if world.card is not None:
        add_cards(spec, spec.body("block"), world.card, CARDS)
    model = spec.compile()
    io = MujocoRobotIO(model, simulation=options.simulation, sensing=parameters.sensing)
    start = np.array([0.5, 0.0, parameters.block_height + parameters.start_height])
    task = PegInsert(io, solve_ik(model, "tcp", start, DOWNWARD), task_spec, parameters)
    operator: ScriptedOperator = InsertionOperator(task_spec, lambda: task.T_base_hole, parameters.success_depth)
    if task_spec is HARD_SPEC and options.intervention.knowledge == "estimate":
        operator = SearchingOperator(task_spec, lambda: task.T_base_estimate, parameters.success_depth)
    dynamics = options.randomization.dynamics.widened(parameters.dynamics)
    options = replace(options, randomization=replace(options.randomization, dynamics=dynamics))
    return simulated_workcell(io, task, operator, options)
