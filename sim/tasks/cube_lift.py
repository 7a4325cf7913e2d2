"""Task `cube_lift`: grasp a cube on the table and lift it, with a discrete gripper action.

The cube lies within 3 cm of its nominal place, turned by up to 30 degrees. The policy receives an estimate of its pose
at reset, with an error of up to 4 mm. Success: the cube's underside is 5 cm over the table, and the cube is between the
fingers, for two steps.
"""

from __future__ import annotations

import numpy as np

from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose
from sim.arm.inverse_kinematics import solve_ik
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.scene import CAMERAS, DOWNWARD, FINGER_RANGE, add_gripper_tool, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.cube import CUBE, CubeTask, GraspOperator, add_table_and_cube

SPEC = TaskSpec(
    name="cube_lift",
    instruction="grasp the orange cube and lift it",
    max_steps=100,
    control_period=0.1,
    workspace=Workspace(low=(-0.07, -0.07, -0.09), high=(0.07, 0.07, 0.08), yaw=0.7, tilt=0.2),
    action_axes=("x", "y", "z", "yaw"),
    action_translation=0.02,
    gripper=True,
    gripper_open_width=2 * FINGER_RANGE,
    cameras=CAMERAS,
    world=("friction", "estimate_error", "arm", *ARM_WORLD),
)
START = np.array([0.5, 0.0, 0.10])
CUBE_RANGE = 0.03
LIFT_HEIGHT = 0.05
"""Height of the cube's underside that counts as lifted [m]."""
HOLD_STEPS = 2


class CubeLift(CubeTask):
    """The cube near the middle; success: it is held in the air."""

    @property
    def start(self) -> np.ndarray:
        """Position of the tcp at the start of an episode, base frame [m]."""
        return START

    def cube_start(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw the cube's place: within `CUBE_RANGE` of the start pose, along x and y."""
        x, y = START[:2] + rng.uniform(-CUBE_RANGE, CUBE_RANGE, 2)
        return x, y

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: lifted and between the fingers for two consecutive steps."""
        height = float(self.cube_pose().position[2])
        between = float(np.linalg.norm(self.cube_pose().position - self._io.controller.pose().position)) < 1.5 * CUBE
        lifted = height - CUBE >= LIFT_HEIGHT
        self._held = self._held + 1 if lifted and between and state.gripper_width > CUBE else 0
        success = self._held >= HOLD_STEPS
        return Outcome(success, success_reward(success), metrics={"height": height})


class LiftOperator(GraspOperator):
    """Operator that grasps the cube and lifts it."""

    def distance(self, state: RobotState) -> float:
        """Return the distance of the fingers to the cube plus that of the cube to its height [m]."""
        cube = self._cube().position
        lift = max(0.0, LIFT_HEIGHT + CUBE - cube[2])
        return float(np.linalg.norm(state.T_base_tcp.position - cube)) + lift

    def carry(self, state: RobotState, attitude: np.ndarray) -> tuple[Pose, float]:
        """Return a point above."""
        return Pose(state.T_base_tcp.position + np.array([0.0, 0.0, 0.05]), attitude), -1.0


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `cube_lift`."""
    spec = new_scene()
    add_gripper_tool(spec, arm=options.world.arm)
    add_table_and_cube(spec)
    model = spec.compile()
    gains = ImpedanceGains(translation=1500.0, max_translation_error=SPEC.action_translation)
    io = MujocoRobotIO(model, gains=gains, simulation=options.simulation, finger_open_width=2 * FINGER_RANGE)
    q_start = solve_ik(model, "tcp", START, DOWNWARD)
    task = CubeLift(io, q_start, SPEC, options.world.estimate_error)
    return simulated_workcell(io, task, LiftOperator(SPEC, task.cube_pose), options)
