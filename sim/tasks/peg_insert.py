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

from dataclasses import dataclass, replace

import numpy as np

from robot_rl.config.randomization import DynamicsConfig
from robot_rl.env.task import TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import yaw_pose
from sim.arm.inverse_kinematics import solve_ik
from sim.card import Card, add_cards
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InsertionOperator, ScriptedOperator
from sim.scene import CAMERAS, DOWNWARD, add_hole_block, add_peg_tool, new_scene
from sim.sensing import Sensing
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.insertion import Insertion, InsertionParameters
from sim.tasks.searching_operator import SearchingOperator


@dataclass(frozen=True, kw_only=True)
class PegInsertParameters(InsertionParameters):
    """Those of `peg_insert` [m, rad]."""

    clearance: float = 0.0005
    chamfer: float = 0.00075
    block_half_width: float = 0.1
    block_height: float = 0.06
    start_height: float = 0.034
    estimate_error: float = 0.002
    estimate_error_yaw: float = float(np.deg2rad(1.0))
    success_depth: float = 0.025


SPEC = TaskSpec(
    name="peg_insert",
    instruction="insert the square peg into the hole of the block",
    max_steps=100,
    control_period=0.1,
    workspace=Workspace(low=(-0.05, -0.05, -0.09), high=(0.05, 0.05, 0.02), yaw=0.35, tilt=0.2),
    action_axes=("x", "y", "z", "yaw"),
    cameras=CAMERAS,
    world=("clearance", "friction", "tilt", "estimate_error", "card", "arm", *ARM_WORLD),
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


def make_hard(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of the hard task; the entry point `peg_hard`."""
    return make(options, HARD, HARD_SPEC)


def make(
    options: WorkcellOptions, parameters: PegInsertParameters | None = None, task_spec: TaskSpec = SPEC
) -> Workcell:
    """Make the simulated workcell of this task; the entry point `peg_insert`."""
    world = options.world
    parameters = (parameters or PegInsertParameters()).in_world(world)
    spec = new_scene()
    add_peg_tool(spec, world.arm)
    add_hole_block(
        spec,
        half_widths=(parameters.block_half_width,) * 2,
        height=parameters.block_height,
        clearance=parameters.clearance,
        chamfer=parameters.chamfer,
    )
    if world.card is not None:
        add_cards(spec, spec.body("block"), world.card, CARDS)
    model = spec.compile()
    io = MujocoRobotIO(model, simulation=options.simulation, sensing=parameters.sensing)
    start = np.array([0.5, 0.0, parameters.block_height + parameters.start_height])
    task = Insertion(io, solve_ik(model, "tcp", start, DOWNWARD), task_spec, parameters)
    operator: ScriptedOperator = InsertionOperator(task_spec, lambda: task.T_base_hole, parameters.success_depth)
    if task_spec is HARD_SPEC and options.intervention.knowledge == "estimate":
        operator = SearchingOperator(task_spec, lambda: task.T_base_estimate, parameters.success_depth)
    return simulated_workcell(io, task, operator, options, parameters.dynamics)
