"""Task `cube_lift`: grasp a cube on the table and lift it, with a discrete gripper action.

The cube lies within 3 cm of its nominal place, turned by up to 30 degrees. The policy receives an estimate of its pose
at reset, with an error of up to 4 mm. Success: the cube's underside is 5 cm over the table, and the cube is between the
fingers, for two steps.
"""

from __future__ import annotations

import mujoco
import numpy as np

from robot_rl.data.sparse_reward import success_reward
from robot_rl.env.robot_io import RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_multiply, yaw_pose
from robot_rl.spec import ArraySpec
from sim.arm import ARM_DOF, ORANGE, solve_ik
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InterventionHabit, OperatorSkill, ScriptedOperator
from sim.scene import CAMERAS, DOWNWARD, FINGER_RANGE, GRIP, add_gripper_tool, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.pose_estimate import drawn_offset, seen_from_tcp

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
    world=("friction", "estimate_error", *ARM_WORLD),
)
CUBE = 0.02
"""Half the side of the cube [m]."""
START = np.array([0.5, 0.0, 0.10])
CUBE_RANGE, CUBE_YAW_RANGE = 0.03, float(np.deg2rad(30.0))
ESTIMATE_ERROR, ESTIMATE_ERROR_YAW = 0.004, float(np.deg2rad(3.0))
LIFT_HEIGHT = 0.05
"""Height of the cube's underside that counts as lifted [m]."""
HOLD_STEPS = 2


class CubeLift:
    """Scene, reset, estimate and success condition.

    Args:
        io: The simulated arm with the gripper; the cube's free joint comes after the fingers.
        q_start: Joint angles of the start pose [rad].
        estimate_error: Factor of the largest error of the estimate.
    """

    spec = SPEC

    def __init__(self, io: MujocoRobotIO, q_start: np.ndarray, estimate_error: float = 1.0) -> None:
        self._io, self._q_start, self._error = io, q_start, estimate_error
        self._cube = io.model.body("cube").id
        self._T_base_estimate = Pose.identity()
        self._held = 0

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the cube's estimated pose at reset, in the tcp frame."""
        return {"state/cube_estimate": ArraySpec((4,), unit="m, rad", scale=(0.02, 0.02, 0.02, 0.2))}

    def reset(self, seed: int) -> None:
        """Draw the cube's pose and the error of its estimate; the arm starts at the same pose, fingers open."""
        rng = np.random.default_rng([seed, 1])
        x, y = START[:2] + rng.uniform(-CUBE_RANGE, CUBE_RANGE, 2)
        yaw = rng.uniform(-CUBE_YAW_RANGE, CUBE_YAW_RANGE)
        cube = yaw_pose(x, y, CUBE, yaw)
        dx, dy = drawn_offset(rng, self._error * ESTIMATE_ERROR)
        yaw_error = self._error * rng.uniform(-ESTIMATE_ERROR_YAW, ESTIMATE_ERROR_YAW)
        self._T_base_estimate = yaw_pose(x + dx, y + dy, CUBE, yaw + yaw_error)
        fingers = [FINGER_RANGE, FINGER_RANGE]
        self._io.reset(np.concatenate((self._q_start, fingers, cube.position, cube.quaternion)), seed)
        self._held = 0

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the cube's estimated pose in the tcp frame: position [m], rotation [rad]."""
        del T_base_reset  # the estimate is relative to the tcp itself
        return {"state/cube_estimate": seen_from_tcp(state, self._T_base_estimate)}

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: lifted and between the fingers for two consecutive steps."""
        height = float(self.cube_pose().position[2])
        between = float(np.linalg.norm(self.cube_pose().position - self._io.controller.pose().position)) < 1.5 * CUBE
        lifted = height - CUBE >= LIFT_HEIGHT
        self._held = self._held + 1 if lifted and between and state.gripper_width > CUBE else 0
        success = self._held >= HOLD_STEPS
        return Outcome(success, success_reward(success), metrics={"height": height})

    def cube_pose(self) -> Pose:
        """Return the true pose of the cube in the base frame."""
        data = self._io.data
        return Pose(data.xpos[self._cube].copy(), data.xquat[self._cube].copy())


class LiftOperator(ScriptedOperator):
    """Operator that hovers over the cube with open fingers, descends, closes, waits for the grip, and lifts."""

    hover = 0.05
    """Height of the tcp over the cube's centre during alignment [m]."""
    aligned = 0.006
    """Lateral error below which it descends [m]."""
    low_enough = 0.006
    """Height of the tcp over the cube's centre below which it closes the fingers [m]."""
    grip_steps = 4
    """Number of steps to wait for the fingers."""

    def __init__(self, task: CubeLift) -> None:
        super().__init__(SPEC, OperatorSkill(speed=(0.5, 0.7)), InterventionHabit(stall_steps=8, progress=0.004))
        self._task = task

    def begin(self) -> None:
        """Discard the state of the grasp."""
        self._closing, self._waited = False, 0

    def distance(self, state: RobotState) -> float:
        """Return the distance of the fingers to the cube plus that of the cube to its height [m]."""
        cube = self._task.cube_pose().position
        lift = max(0.0, LIFT_HEIGHT + CUBE - cube[2])
        return float(np.linalg.norm(state.T_base_tcp.position - cube)) + lift

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan the next goal, the relative speed and the gripper action."""
        seen = self.perceived(self._task.cube_pose())
        offset = state.T_base_tcp.position - seen.position
        lateral = float(np.hypot(offset[0], offset[1]))
        downward = quat_multiply(seen.quaternion, DOWNWARD)
        if self._closing and (lateral > CUBE or abs(offset[2]) > CUBE):
            self._closing = False  # lost the cube
        if not self._closing and lateral < self.aligned and abs(offset[2]) < self.low_enough:
            self._closing, self._waited = True, 0
        if self._closing:
            self._waited += 1
            up = 0.05 if self._waited > self.grip_steps else 0.0
            return Pose(state.T_base_tcp.position + np.array([0.0, 0.0, up]), downward), 1.0, -1.0
        # Beside the cube, move up first, so as not to push it; over it, move down.
        height = 0.0 if lateral < self.aligned else self.hover
        return Pose(seen.position + np.array([0.0, 0.0, height]), downward), 1.0, 1.0


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of this task; the entry point `cube_lift`."""
    spec = new_scene()
    add_gripper_tool(spec)
    box = mujoco.mjtGeom.mjGEOM_BOX
    spec.worldbody.add_geom(
        name="table", type=box, size=(0.3, 0.3, 0.01), pos=(0.5, 0, -0.01), rgba=(0, 0, 0, 0), **GRIP
    )
    cube = spec.worldbody.add_body(name="cube", pos=(0.5, 0, CUBE))
    cube.add_freejoint(name="cube")
    cube.add_geom(type=box, size=(CUBE, CUBE, CUBE), mass=0.1, rgba=ORANGE, **GRIP)
    model = spec.compile()
    gains = ImpedanceGains(translation=1500.0, max_translation_error=SPEC.action_translation)
    io = MujocoRobotIO(model, gains=gains, simulation=options.simulation, finger_open_width=2 * FINGER_RANGE)
    q_start = solve_ik(model, "tcp", START, DOWNWARD)[:ARM_DOF]
    task = CubeLift(io, q_start, options.world.estimate_error)
    return simulated_workcell(io, task, LiftOperator(task), options)
