"""Workcells without physics: a point, or two, that move at constant speed, on a clock that moves when slept on.

It keeps the same contracts as the simulated and the real one, so what is tested on it holds for `RobotEnv` itself.
"""

import threading
from dataclasses import dataclass, field

import numpy as np

from robot_rl.arm.joined_robot_io import JoinedRobotIO
from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.data.schema import Source
from robot_rl.env.robot_io import Command, RobotState, SetPoint, check_command
from robot_rl.env.task import ArmSpec, Outcome, TaskSpec, Workcell, Workspace
from robot_rl.errors import ActionError, StaleStateError
from robot_rl.geometry import Pose
from robot_rl.spec import ArraySpec

SPEC = TaskSpec(
    name="fake_reach",
    instruction="move the point to the goal",
    max_steps=30,
    control_period=0.1,
    workspace=Workspace(low=(-0.1, -0.1, -0.1), high=(0.1, 0.1, 0.1), yaw=0.2, tilt=0.2),
    action_axes=("x", "y", "z"),
)
SPEED = 0.2
"""Of the point [m/s]."""
NOISE = 1e-4
"""Standard deviation of its measured position [m]."""


class FakeRobot:
    """Moves straight to the set-point while a command is good, and holds otherwise."""

    max_age = 0.2

    def __init__(self):
        self.clock = FakeClock(start=NS_PER_S)
        self.force = 0.0
        """Contact force that it claims to feel [N]."""
        self.commands: list[Command] = []
        self.stops = 0
        self._position = np.zeros(3)
        self._rng = np.random.default_rng(0)
        self._lock = threading.Lock()
        self._target, self._expires, self._updated = None, 0, self.clock.now()
        self._frozen: int | None = None

    def freeze(self):
        """Fault injection: no new measurement from now on."""
        self._frozen = self.clock.now()

    def thaw(self):
        """The end of that: measurements come again."""
        self._frozen = None

    def place(self, position: np.ndarray, seed: int):
        with self._lock:
            self._position, self._target, self._updated = np.array(position, float), None, self.clock.now()
            self._rng = np.random.default_rng(seed)

    def position(self) -> np.ndarray:
        """The truth."""
        with self._lock:
            self._move()
            return self._position.copy()

    def read(self) -> RobotState:
        position, now = self.position(), self.clock.now()
        stamp = now if self._frozen is None else self._frozen
        if (age := (now - stamp) / NS_PER_S) > self.max_age:
            raise StaleStateError(age, self.max_age)
        return RobotState(
            stamp=stamp,
            T_base_tcp=Pose(position + self._rng.normal(0.0, NOISE, 3), np.array([0.0, 1.0, 0.0, 0.0])),
            twist=np.zeros(6),
            wrench=np.array([0.0, 0.0, self.force, 0.0, 0.0, 0.0]),
            joint_position=position,
            joint_velocity=np.zeros(3),
            peak_force=self.force,
        )

    def command(self, command: Command):
        expires = check_command(command, self.clock.now())
        if command.wrench is not None:
            raise ActionError("the point follows set-points only")
        with self._lock:
            self._move()
            self._target, self._expires = command.T_base_target.position.copy(), expires
            self.commands.append(command)

    def stop(self):
        with self._lock:
            self._move()
            self._target = None
            self.stops += 1

    def _move(self):
        now = self.clock.now()
        if self._target is not None:
            way = self._target - self._position
            reach = SPEED * (min(now, self._expires) - self._updated) / NS_PER_S
            distance = np.linalg.norm(way)
            self._position = self._position + way * min(1.0, reach / distance if distance > 0 else 1.0)
            if now >= self._expires:
                self._target = None
        self._updated = now


class FakeTask:
    """Success is to be within 5 mm of a goal that lies 5 cm away."""

    def __init__(self, robot: FakeRobot, spec: TaskSpec = SPEC):
        self.spec, self._robot, self.goal = spec, robot, np.zeros(3)

    def observation_specs(self):
        return {"state/goal": ArraySpec((3,), unit="m", scale=0.05)}

    def reset(self, seed):
        direction = np.random.default_rng([seed, 1]).normal(size=3)
        self.goal = 0.05 * direction / np.linalg.norm(direction)
        self._robot.place(np.zeros(3), seed)

    def observe(self, state, T_base_reset):
        return {"state/goal": self.goal - state.T_base_tcp.position}

    def evaluate(self, state):
        distance = float(np.linalg.norm(self._robot.position() - self.goal))
        success = distance < 0.005
        return Outcome(success, float(success), metrics={"distance": distance})


@dataclass
class FakeOperator:
    """Goes to the goal; takes over for four steps after every six of the policy's."""

    task: FakeTask
    demonstrate: bool = False
    steps: int = 0
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def reset(self, seed, demonstrate):
        self.demonstrate, self.steps, self.rng = demonstrate, 0, np.random.default_rng([seed, 2])

    def act(self, state, T_base_reset):
        self.steps += 1
        if not self.demonstrate and self.steps % 10 < 6:
            return None
        way = self.task.goal - state.T_base_tcp.position
        wanted = way * np.array([1.0, -1.0, -1.0]) / SPEC.action_translation  # the tcp looks down
        return np.clip(wanted + self.rng.normal(0.0, 0.05, 3), -1.0, 1.0)


def fake_workcell(spec: TaskSpec = SPEC) -> Workcell:
    robot = FakeRobot()
    task = FakeTask(robot, spec)
    return Workcell(
        io=robot,
        clock=robot.clock,
        task=task,
        operator=FakeOperator(task),
        operator_source=Source.HUMAN,
        close=lambda: None,
    )


ARMS_SPEC = TaskSpec.of_arms(
    {
        name: ArmSpec(SPEC.workspace, base_position=(0.0, y, 0.0), action_axes=axes, gripper=True)
        for name, y, axes in (("left", 0.5, ("x", "y", "z")), ("right", -0.5, ("x", "y")))
    },
    name="fake_arms",
    instruction="move both points up to their goals",
    max_steps=30,
    control_period=0.1,
)


class FakeArmsTask:
    """Success is that both points have come 3 cm along x."""

    def __init__(self, robots: dict[str, FakeRobot], spec: TaskSpec):
        self.spec, self._robots = spec, robots

    def observation_specs(self):
        return {}

    def reset(self, seed):
        for number, robot in enumerate(self._robots.values()):
            robot.place(np.zeros(3), seed + number)

    def observe(self, state, T_base_reset):
        return {}

    def evaluate(self, state):
        success = all(robot.position()[0] > 0.03 for robot in self._robots.values())
        return Outcome(success, float(success))


class FakeHands:
    """Leads the arms that a test names."""

    def __init__(self):
        self.led = {}

    def reset(self, seed, demonstrate):
        if demonstrate:
            self.led = {"left": np.array([1.0, 0.0, 0.0, 1.0]), "right": np.array([1.0, 0.0, 0.0])}

    def act(self, state, T_base_reset):
        return self.led or None


def fake_arms(spec: TaskSpec = ARMS_SPEC, clock: FakeClock | None = None) -> tuple[Workcell, dict[str, FakeRobot]]:
    """A cell with two arms, and each of them."""
    clock, robots = clock or FakeClock(start=NS_PER_S), {name: FakeRobot() for name in ("left", "right")}
    for robot in robots.values():
        robot.clock = clock
    joined = JoinedRobotIO(robots, clock)
    cell = Workcell(joined, clock, FakeArmsTask(robots, spec), FakeHands(), Source.HUMAN, lambda: None)
    return cell, robots


class OneOfArms:
    """One arm of a cell as a robot, while the others are sent where they are.

    Args:
        io: The cell.
        name: Of the arm.
        poses: Returns where all arms are, by name.
    """

    def __init__(self, io, name, poses):
        self._io, self._name, self._poses = io, name, poses

    def read(self):
        return self._io.read().arms[self._name]

    def command(self, command):
        points = {name: SetPoint(pose) for name, pose in self._poses().items()}
        points[self._name] = command.set_point
        self._io.command(Command.of_arms(command.stamp, command.ttl, points))

    def stop(self):
        self._io.stop()
