"""Tasks `relocate`, `relocate_forward` and `relocate_back`: move a cube from one bin into the other, and let go of it.

Two bins lie side by side, 3 cm deep. The cube lies in one of them, within 2.5 cm of its middle, turned by up to 30
degrees; where it lies decides the direction. `relocate` draws the bin for each episode, the other two are its halves:
each leaves the scene as the other one needs it. The policy receives an estimate of the cube's pose at reset, with an
error of up to 4 mm, and where the middle of the other bin is.

Success: the cube rests on the floor of the other bin and between its walls, and the fingers have let go of it, for
three steps.
"""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np

from robot_rl.clock import Clock
from robot_rl.data.sparse_reward import stage_metrics, success_reward
from robot_rl.env.move_arm import Travel, go_to_start, move_gripper
from robot_rl.env.robot_io import RobotIO, RobotState
from robot_rl.env.task import Outcome, TaskSpec, Workcell, WorkcellOptions, Workspace
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, quat_rotate
from robot_rl.spec import ArraySpec
from sim.arm.inverse_kinematics import solve_ik
from sim.controller import ImpedanceGains
from sim.mujoco_robot_io import MujocoRobotIO
from sim.operator import way_over
from sim.scene import CAMERAS, DOWNWARD, FINGER_RANGE, GRIP, add_gripper_tool, new_scene
from sim.sim_workcell import ARM_WORLD, simulated_workcell
from sim.tasks.cube import BOX, CUBE, CubeTask, GraspOperator, add_table_and_cube, level_yaw

SPEC = TaskSpec(
    name="relocate",
    instruction="take the orange cube out of its bin and put it into the other bin",
    max_steps=200,
    control_period=0.1,
    workspace=Workspace(low=(-0.07, -0.14, -0.13), high=(0.07, 0.14, 0.04), yaw=0.7, tilt=0.2),
    action_axes=("x", "y", "z", "yaw"),
    action_translation=0.02,
    gripper=True,
    gripper_open_width=2 * FINGER_RANGE,
    cameras=CAMERAS,
    world=("friction", "estimate_error", "arm", *ARM_WORLD),
    stages=("lifted",),
)
START = np.array([0.5, 0.0, 0.14])
BIN = (0.075, 0.08)
"""Half the inner length and width of a bin [m]."""
LIFTED = 0.03
"""Height of the cube above the floor of a bin from which on it counts as lifted [m]."""
WALL, WALL_HEIGHT = 0.004, 0.03
"""Half the thickness of a wall, and its height [m]."""
BIN_OFFSET = BIN[1] + WALL
"""Of the middle of each bin from the wall between them, along y [m]."""
CUBE_RANGE = 0.025
REST_SPEED = 0.02
"""Speed below which the cube rests [m/s]."""
RELEASED_WIDTH = 2 * CUBE + 0.01
"""Distance between the fingers from which on they have let go of the cube [m]."""
HOLD_STEPS = 3
TIDY_SPEED, TIDY_TURN_RATE = 0.15, 1.0
"""Of the tool while it brings the cube into the middle of its bin [m/s, rad/s]."""


class Relocate(CubeTask):
    """The cube in one of two bins; success: it lies in the other one.

    Args:
        io: The simulated arm with the gripper; the cube's free joint comes after the fingers.
        q_start: Joint angles of the start pose [rad].
        spec: Facts of the task.
        sides: Bins in which the cube may start: -1 for the one at negative y, 1 for the other.
        estimate_error: Factor of the largest error of the estimate.

    Attributes:
        target_side: The bin into which the cube belongs, -1 or 1; that in which it does not lie at reset.
    """

    def __init__(
        self,
        io: MujocoRobotIO,
        q_start: np.ndarray,
        spec: TaskSpec,
        sides: tuple[int, ...],
        estimate_error: float = 1.0,
    ) -> None:
        super().__init__(io, q_start, spec, estimate_error)
        self._sides, self.target_side = sides, -sides[0]

    @property
    def target(self) -> np.ndarray:
        """Where a cube in the middle of the other bin has its centre, base frame [m]."""
        return np.array([START[0], self.target_side * BIN_OFFSET, CUBE])

    @property
    def start(self) -> np.ndarray:
        """Position of the tcp at the start of an episode, base frame [m]."""
        return START

    def observation_specs(self) -> dict[str, ArraySpec]:
        """Return the specs of the cube's estimated pose at reset, and of the other bin, in the tcp frame."""
        bin_spec = ArraySpec((3,), unit="m", scale=(0.05, 0.05, 0.05))
        return {**super().observation_specs(), "state/bin": bin_spec}

    def cube_start(self, rng: np.random.Generator) -> tuple[float, float]:
        """Draw the bin and the cube's place in it."""
        side = int(rng.choice(self._sides))
        self.target_side = -side
        x, y = rng.uniform(-CUBE_RANGE, CUBE_RANGE, 2)
        return float(START[0] + x), float(side * BIN_OFFSET + y)

    def obstacle(self) -> str | None:
        """Return whether the cube lies outside of the bins, or in that into which it belongs."""
        x, y, z = self.cube_pose().position - np.array([START[0], 0.0, CUBE])
        if abs(x) > BIN[0] or abs(y) > 2 * BIN_OFFSET or z > WALL_HEIGHT:
            return "the cube lies outside of the bins"
        if self._side() not in self._sides:
            return "the cube lies in the bin into which it belongs"
        return None

    def tidy(self, io: RobotIO, clock: Clock) -> None:
        """Grasp a cube that lies too near to a wall, across the wall, and put it into the middle of its bin."""
        cube, middle = self.cube_pose(), np.array([START[0], self._side() * BIN_OFFSET, CUBE])
        off = cube.position - middle
        if np.abs(off[:2]).max() <= CUBE_RANGE:
            return
        # The fingers close along y, turned by a quarter along x: along that wall which is nearer.
        quarter = np.pi / 2 if BIN[1] - abs(off[1]) < BIN[0] - abs(off[0]) else 0.0
        turn = quat_from_rotvec(np.array([0.0, 0.0, level_yaw(cube) + quarter]))
        grasp = Pose(np.array([*cube.position[:2], CUBE]), quat_multiply(turn, DOWNWARD))
        place = Pose(middle + np.array([0.0, 0.0, 0.006]), grasp.quaternion)
        above = np.array([0.0, 0.0, 0.09])
        travel = Travel(io, clock, TIDY_SPEED, TIDY_TURN_RATE)
        travel.go(Pose(grasp.position + above, grasp.quaternion))
        travel.go(grasp)
        move_gripper(io, clock, 0.0)
        for goal in (Pose(grasp.position + above, grasp.quaternion), Pose(place.position + above, place.quaternion)):
            travel.go(goal)
        travel.go(place)
        move_gripper(io, clock, self.spec.gripper_open_width)
        go_to_start(io, clock, self.home)

    def go_on(self, seed: int) -> None:
        """Begin with the cube where it lies; it belongs into the other bin."""
        self.target_side = -self._side()
        super().go_on(seed)

    def _side(self) -> int:
        """Return the bin in which the cube lies, -1 or 1."""
        return 1 if self.cube_pose().position[1] >= 0.0 else -1

    def observe(self, state: RobotState, T_base_reset: Pose) -> dict[str, np.ndarray]:
        """Return the cube's estimated pose, and the middle of the other bin's floor, in the tcp frame [m, rad]."""
        here = state.T_base_tcp
        to_bin = quat_rotate(quat_conjugate(here.quaternion), self.target - here.position)
        return {**super().observe(state, T_base_reset), "state/bin": to_bin}

    def delivered(self) -> bool:
        """Return whether the cube rests on the floor of the other bin, all of it between the walls."""
        cube = self.cube_pose()
        x, y, z = np.abs(cube.position - self.target)
        axes = np.abs(cube.matrix)
        reach_x, reach_y, reach_z = axes @ np.full(3, CUBE)  # of the corners from the centre
        inside = x + reach_x <= BIN[0] + 0.001 and y + reach_y <= BIN[1] + 0.001
        on_floor = z <= 0.002 and reach_z <= 1.1 * CUBE
        return bool(inside and on_floor and self.cube_speed() < REST_SPEED)

    def evaluate(self, state: RobotState) -> Outcome:
        """Evaluate success in the true scene: delivered and let go of, for three consecutive steps."""
        released, delivered = state.gripper_width >= RELEASED_WIDTH, self.delivered()
        self._held = self._held + 1 if released and delivered else 0
        success = self._held >= HOLD_STEPS
        way = self.cube_pose().position - self.target
        lifted = delivered or bool(way[2] >= LIFTED)
        metrics = {"distance": float(np.linalg.norm(way)), **stage_metrics(lifted=lifted)}
        return Outcome(success, success_reward(success), metrics=metrics)

    def cube_speed(self) -> float:
        """Return the speed of the cube [m/s]."""
        velocity = np.empty(6)
        mujoco.mj_objectVelocity(self._io.model, self._io.data, mujoco.mjtObj.mjOBJ_BODY, self._cube, velocity, 0)
        return float(np.linalg.norm(velocity[3:]))


class RelocateOperator(GraspOperator):
    """Operator that grasps the cube, carries it over the wall between the bins, puts it down, and moves up.

    Args:
        task: The task, whose true scene it sees.
    """

    clear = 0.085
    """Height of the tcp at which the cube passes over the wall [m]."""
    low = CUBE + 0.006
    """Height of the tcp at which it lets go [m]."""
    near = 0.02
    """Lateral distance from the bin's middle at which it lowers the cube [m]."""

    def __init__(self, task: Relocate) -> None:
        super().__init__(task.spec, task.cube_pose)
        self._task = task

    def distance(self, state: RobotState) -> float:
        """Return the distance of the fingers to the cube plus the cube's way over the wall to its place [m]."""
        cube = self._cube().position
        if self._task.delivered():
            return 0.0
        reach = float(np.linalg.norm(state.T_base_tcp.position - cube))
        return reach + way_over(cube, self._task.target, self.clear, self.near)

    def plan(self, state: RobotState) -> tuple[Pose, float, float]:
        """Plan as for any grasp; where the cube is in place already, open the fingers and move up."""
        if not self._task.delivered():
            return super().plan(state)
        self._closing = False
        return Pose(state.T_base_tcp.position + np.array([0.0, 0.0, 0.05]), state.T_base_tcp.quaternion), 1.0, 1.0

    def carry(self, state: RobotState, attitude: np.ndarray) -> tuple[Pose, float]:
        """Return a point above at first, then over the other bin, then on its floor, where the fingers open."""
        here, goal = state.T_base_tcp.position, self._task.target
        if np.hypot(*(goal - here)[:2]) < self.near:
            return Pose(np.array([goal[0], goal[1], CUBE]), attitude), 1.0 if here[2] < self.low else -1.0
        up = np.array([here[0], here[1], self.clear + 0.01])
        over = np.array([goal[0], goal[1], self.clear + 0.01])
        return Pose(over if here[2] > self.clear else up, attitude), -1.0


def add_bins(spec: mujoco.MjSpec) -> None:
    """Add the walls of two bins side by side, which share the wall between them; the table is their floor."""
    length, width = BIN[0] + 2 * WALL, 2 * BIN_OFFSET
    walls = [((BIN[0] + WALL) * sign, 0.0, WALL, width + WALL) for sign in (-1.0, 1.0)]
    walls += [(0.0, y, length, WALL) for y in (-width, 0.0, width)]
    for x, y, half_x, half_y in walls:
        spec.worldbody.add_geom(
            type=BOX,
            size=(half_x, half_y, WALL_HEIGHT / 2),
            pos=(START[0] + x, y, WALL_HEIGHT / 2),
            rgba=(0.36, 0.50, 0.72, 1),
            **GRIP,
        )


def make(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of the task in both directions; the entry point `relocate`."""
    return _make(options, SPEC, (-1, 1))


def make_forward(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of the way from negative to positive y; the entry point `relocate_forward`."""
    return _make(options, replace(SPEC, name="relocate_forward", reverse="relocate_back"), (-1,))


def make_back(options: WorkcellOptions) -> Workcell:
    """Make the simulated workcell of the way back; the entry point `relocate_back`."""
    return _make(options, replace(SPEC, name="relocate_back", reverse="relocate_forward"), (1,))


def _make(options: WorkcellOptions, task_spec: TaskSpec, sides: tuple[int, ...]) -> Workcell:
    spec = new_scene(look_at=(0.5, 0.0, 0.05), distance=1.4)
    add_gripper_tool(spec, arm=options.world.arm)
    add_bins(spec)
    add_table_and_cube(spec)
    model = spec.compile()
    gains = ImpedanceGains(translation=1500.0, max_translation_error=task_spec.action_translation)
    io = MujocoRobotIO(model, gains=gains, simulation=options.simulation, finger_open_width=2 * FINGER_RANGE)
    q_start = solve_ik(model, "tcp", START, DOWNWARD)
    task = Relocate(io, q_start, task_spec, sides, options.world.estimate_error)
    return simulated_workcell(io, task, RelocateOperator(task), options)
