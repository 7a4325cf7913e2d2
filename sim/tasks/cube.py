"""What tasks with a cube and a gripper share: the scene, the estimated pose of the cube, and how it is grasped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import mujoco
import numpy as np

from robot_rl.clock import Clock
from robot_rl.env.robot_io import RobotIO, RobotState
from robot_rl.env.task import Outcome, StartPose, TaskSpec
from robot_rl.geometry import Pose, quat_multiply, yaw_pose
from robot_rl.spec import ArraySpec
from sim.arm.shapes import ORANGE
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import InterventionHabit, OperatorSkill, ScriptedOperator
from sim.scene import DOWNWARD, FINGER_RANGE, GRIP, add_table
from sim.tasks.pose_estimate import drawn_offset, seen_from_tcp

CUBE = 0.02
"""Half the side of the cube [m]."""
CUBE_YAW_RANGE = float(np.deg2rad(30.0))
ESTIMATE_ERROR, ESTIMATE_ERROR_YAW = 0.004, float(np.deg2rad(3.0))
BOX = mujoco.mjtGeom.mjGEOM_BOX


def add_table_and_cube(spec: mujoco.MjSpec) -> None:
    """Add a table to put things on, its surface at z = 0, and the cube, whose free joint comes last."""
    add_table(spec)
    cube = spec.worldbody.add_body(name="cube", pos=(0.5, 0, CUBE))
    cube.add_freejoint(name="cube")
    cube.add_geom(type=BOX, size=(CUBE, CUBE, CUBE), mass=0.1, rgba=ORANGE, **GRIP)


class CubeTask(ABC):
    """Scene, reset and estimate; a subclass says where the cube starts and when the task is done.

    Args:
        io: The simulated arm with the gripper; the cube's free joint comes after the fingers.
        q_start: Joint angles of the start pose [rad].
        spec: Facts of the task.
        estimate_error: Factor of the largest error of the estimate.
    """

    def __init__(self, io: MujocoRobotIO, q_start: np.ndarray, spec: TaskSpec, estimate_error: float = 1.0) -> None:
        self._io, self._q_start, self.spec, self._error = io, q_start, spec, estimate_error
        self._cube = io.model.body("cube").id
        self.T_base_estimate = Pose.identity()
        self._held = 0

    @abstractmethod
    def cube_start(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw the cube's place on the table: x and y in the base frame [m]."""

    @abstractmethod
    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene; see `Task.evaluate`."""

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the spec of the cube's estimated pose at reset, in the tcp frame."""
        return {"state/cube_estimate": ArraySpec((4,), unit="m, rad", scale=(0.02, 0.02, 0.02, 0.2))}

    @property
    @abstractmethod
    def start(self) -> np.ndarray:
        """Position of the tcp at the start of an episode, base frame [m]."""

    def reset(self, seed: int) -> None:
        """Draw the cube's pose and the error of its estimate; the arm starts at the same pose, fingers open."""
        rng = np.random.default_rng([seed, 1])
        x, y = self.cube_start(rng)
        yaw = rng.uniform(-CUBE_YAW_RANGE, CUBE_YAW_RANGE)
        self._estimate(x, y, yaw, rng)
        cube, fingers = yaw_pose(x, y, CUBE, yaw), [FINGER_RANGE, FINGER_RANGE]
        self._io.reset(np.concatenate((self._q_start, fingers, cube.position, cube.quaternion)), seed)
        self._held = 0

    def _estimate(self, x: float, y: float, yaw: float, rng: np.random.Generator) -> None:
        """Draw the estimate of a cube that lies there [m, rad]."""
        dx, dy = drawn_offset(rng, self._error * ESTIMATE_ERROR)
        yaw_error = self._error * rng.uniform(-ESTIMATE_ERROR_YAW, ESTIMATE_ERROR_YAW)
        self.T_base_estimate = yaw_pose(x + dx, y + dy, CUBE, yaw + yaw_error)

    # To begin without a reset; see `Continues`.

    @property
    def home(self) -> StartPose:
        """Up from whatever the fingers hold, then over the table to the start pose."""
        x, y, z = self.start.tolist()
        w, i, j, k = DOWNWARD.tolist()
        return StartPose((x, y, z), (w, i, j, k), retreat=0.06, speed=0.2, turn_rate=1.0)

    def obstacle(self) -> str | None:
        """Return whether the cube lies out of the tool's reach."""
        offset, spec = self.cube_pose().position - self.start, self.spec.workspace
        if (offset < spec.low)[:2].any() or (offset > spec.high)[:2].any():
            return "the cube lies outside of the workspace"
        return None

    def tidy(self, io: RobotIO, clock: Clock) -> None:
        """Do nothing: on an open table the tool gets at the cube wherever it lies."""
        del io, clock

    def go_on(self, seed: int) -> None:
        """Draw the error of the estimate of the cube where it lies; all else stays as it is."""
        rng, cube = np.random.default_rng([seed, 1]), self.cube_pose()
        x, y = cube.position[:2].tolist()
        self._estimate(x, y, level_yaw(cube), rng)
        self._io.reset(self._io.data.qpos.copy(), seed)
        self._held = 0

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the cube's estimated pose in the tcp frame: position [m], rotation [rad]."""
        del T_base_reset  # the estimate is relative to the tcp itself
        return {"state/cube_estimate": seen_from_tcp(state, self.T_base_estimate)}

    def cube_pose(self) -> Pose:
        """Return the true pose of the cube in the base frame."""
        data = self._io.data
        return Pose(data.xpos[self._cube].copy(), data.xquat[self._cube].copy())


def level_yaw(cube: Pose) -> float:
    """Return the turn of a cube about the vertical in [-pi/4, pi/4), as a quarter turn changes nothing [rad]."""
    axes = cube.matrix
    x, y, _ = axes[:, int(np.argmin(np.abs(axes[2])))]  # the axis that is nearest to level
    return float((np.arctan2(y, x) + np.pi / 4) % (np.pi / 2) - np.pi / 4)


class GraspOperator(ScriptedOperator):
    """Operator that hovers over the cube with open fingers, descends, closes and waits for the grip; then it carries.

    Args:
        spec: The task.
        cube: Function that returns the true pose of the cube in the base frame.
        habit: Conditions of interventions.
    """

    hover = 0.05
    """Height of the tcp over the cube's centre during alignment [m]."""
    aligned = 0.006
    """Lateral error below which it descends [m]."""
    low_enough = 0.006
    """Height of the tcp over the cube's centre below which it closes the fingers [m]."""
    grip_steps = 4
    """Number of steps to wait for the fingers."""

    def __init__(self, spec: TaskSpec, cube: Callable[[], Pose], habit: InterventionHabit | None = None) -> None:
        habit = habit or InterventionHabit(stall_steps=8, progress=0.004)
        super().__init__(spec, OperatorSkill(speed=(0.5, 0.7)), habit)
        self._cube = cube

    @abstractmethod
    def carry(self, state: RobotState, attitude: np.ndarray) -> tuple[Pose, float]:
        """Return where the tcp goes with the grasped cube, and the gripper action; `attitude` is that of its grasp."""

    def begin(self) -> None:
        """Discard the state of the grasp."""
        self._closing, self._waited = False, 0

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan the next goal, the relative speed and the gripper action."""
        seen = self.perceived(self._cube())
        offset = state.T_base_tcp.position - seen.position
        lateral = float(np.hypot(offset[0], offset[1]))
        downward = quat_multiply(seen.quaternion, DOWNWARD)
        if self._closing and (lateral > CUBE or abs(offset[2]) > CUBE):
            self._closing = False  # lost the cube
        if not self._closing and lateral < self.aligned and abs(offset[2]) < self.low_enough:
            self._closing, self._waited = True, 0
        if self._closing:
            self._waited += 1
            if self._waited <= self.grip_steps:
                return Pose(state.T_base_tcp.position, downward), 1.0, -1.0
            goal, gripper = self.carry(state, downward)
            return goal, 1.0, gripper
        # Beside the cube, move up first, so as not to push it; over it, move down.
        height = 0.0 if lateral < self.aligned else self.hover
        return Pose(seen.position + np.array([0.0, 0.0, height]), downward), 1.0, 1.0
