"""Task `reach`: move the tcp to a point in free space and keep it there; a minimal task for tests and first steps."""

from __future__ import annotations

import numpy as np

from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate
from robot_rl.spec import ArraySpec
from sim.arm.inverse_kinematics import solve_ik
from sim.arm.shapes import GREEN, visual
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InterventionHabit, ScriptedOperator
from sim.scene import CAMERAS, DOWNWARD, SPHERE, add_peg_tool, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell

SPEC = TaskSpec(
    name="reach",
    instruction="move the tip of the tool to the green ball and keep it there",
    max_steps=40,
    control_period=0.1,
    workspace=Workspace(low=(-0.06, -0.06, -0.06), high=(0.06, 0.06, 0.06), yaw=0.1, tilt=0.1),
    action_axes=("x", "y", "z"),
    cameras=CAMERAS,
    world=("arm", *ARM_WORLD),
)
START = np.array([0.5, 0.0, 0.2])
TARGET_RANGE = 0.04
"""Largest distance of the target from the start along each axis [m]."""
TOLERANCE = 0.008
"""Distance below which the tip is at the target [m]."""
HOLD_STEPS = 2


class Reach:
    """Random target in a cube around the start; success: the tip is within 8 mm of it for two steps."""

    spec = SPEC

    def __init__(self, io: MujocoRobotIO, q_start: np.ndarray) -> None:
        self._io, self._q_start = io, q_start
        self.target = START.copy()
        self._held = 0

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the target in the tcp frame."""
        return {"state/target": ArraySpec((3,), unit="m", scale=0.02)}

    def reset(self, seed: int) -> None:
        """Draw the target; the arm always starts at the same pose."""
        self.target = START + np.random.default_rng([seed, 1]).uniform(-TARGET_RANGE, TARGET_RANGE, 3)
        self._io.data.mocap_pos[0] = self.target
        self._io.reset(self._q_start, seed)
        self._held = 0

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the target in the tcp frame."""
        del T_base_reset  # the target is relative to the tcp itself
        here = state.T_base_tcp
        return {"state/target": quat_rotate(quat_conjugate(here.quaternion), self.target - here.position)}

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: near the target for two consecutive steps."""
        del state  # the true scene decides, not the sensors
        distance = float(np.linalg.norm(self._io.controller.pose().position - self.target))
        self._held = self._held + 1 if distance <= TOLERANCE else 0
        success = self._held >= HOLD_STEPS
        return Outcome(success, success_reward(success), metrics={"distance": distance})


class ReachOperator(ScriptedOperator):
    """Operator that moves straight to the perceived target."""

    def __init__(self, task: Reach) -> None:
        super().__init__(SPEC, habit=InterventionHabit(stall_steps=8, burst=(5, 15)))
        self._task = task

    def begin(self) -> None:
        """Do nothing: there are no plans."""

    def distance(self, state: RobotState) -> float:
        """Return the distance from the tip to the target [m]."""
        return float(np.linalg.norm(state.T_base_tcp.position - self._task.target))

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan the target as goal."""
        del state  # it goes there from anywhere
        return self.perceived(Pose(self._task.target, DOWNWARD)), 1.0, 0.0


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `reach`."""
    spec = new_scene(look_at=(0.5, 0.0, 0.21))
    add_peg_tool(spec, options.world.arm)
    visual(spec.worldbody.add_body(name="target", mocap=True), SPHERE, GREEN, size=(0.006, 0, 0))
    model = spec.compile()
    io = MujocoRobotIO(model, simulation=options.simulation)
    task = Reach(io, solve_ik(model, "tcp", START, DOWNWARD))
    return simulated_workcell(io, task, ReachOperator(task), options)
