"""What every `RobotIO` has to do. Subclass `RobotIOContract`, give it a `robot` fixture, and run it.

class TestMyRobot(RobotIOContract):
    @pytest.fixture
    def robot(self): return RobotUnderTest(io=..., clock=..., freeze=...)
"""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from robot_rl.clock import NS_PER_S, Clock
from robot_rl.env.robot_io import Command, RobotIO
from robot_rl.errors import ActionError, CommandRefusedError, StaleStateError
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate

PUSH = 10.0
"""Feed-forward force of the tests [N]."""
ARRAYS = ("twist", "wrench", "joint_position", "joint_velocity")

BAD_COMMANDS = (
    {"ttl": 0.0},
    {"ttl": -1.0},
    {"ttl": np.nan},
    {"ttl": np.inf},
    {"stamp": -10 * NS_PER_S},
    {"position": np.array([0.5, np.nan, 0.1])},
    {"position": np.array([0.5, np.inf, 0.1])},
    {"quaternion": np.array([np.nan, 1.0, 0.0, 0.0])},
    {"quaternion": np.zeros(4)},
    {"quaternion": np.array([0.0, 2.0, 0.0, 0.0])},
    {"gripper_width": np.nan},
    {"wrench": np.array([0.0, np.nan, 0.0, 0.0, 0.0, 0.0])},
    {"wrench": np.array([0.0, 0.0, np.inf, 0.0, 0.0, 0.0])},
    {"wrench": np.zeros(3)},
)
"""What is wrong with each, beside a command that leads 5 cm away."""


@dataclass(frozen=True)
class RobotUnderTest:
    """A robot at rest with 10 cm of free space above it.

    Attributes:
        io: The robot.
        clock: Its clock.
        freeze: Injects a fault: from now on nothing new is measured.
        max_age: Age at which its state is stale [s].
        joints: Number of its joints.
        gripper_width: Width to which its gripper opens [m]; 0 without a gripper.
        reach: Distance that it may stay away from a set-point [m].
        settle: Time that it takes to come to rest [s].
        measures_wrench: Whether it measures forces.
        patience: Time within which it goes to a set-point 2 cm away [s]; more than it takes where machines are busy.
        takes_wrench: Whether it follows a feed-forward wrench; if not, it refuses commands with one.
        answers: Whether `command` raises where it refuses; over topics, nobody answers.
    """

    io: RobotIO
    clock: Clock
    freeze: Callable[[], None]
    max_age: float
    joints: int
    gripper_width: float = 0.0
    reach: float = 0.002
    settle: float = 1.0
    patience: float = 0.9
    measures_wrench: bool = True
    takes_wrench: bool = False
    answers: bool = True

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the arrays in a state."""
        return ARRAYS if self.measures_wrench else tuple(name for name in ARRAYS if name != "wrench")

    def sleep(self, seconds: float) -> None:
        self.clock.sleep_until(self.clock.now() + round(seconds * NS_PER_S))

    def position(self) -> np.ndarray:
        """Mean of a few measurements, since each is noisy."""
        return np.mean([self.io.read().T_base_tcp.position for _ in range(20)], axis=0)

    def up(self, distance: float, ttl: float | None = None) -> Command:
        here = self.io.read().T_base_tcp
        target = Pose(np.add(here.position, (0.0, 0.0, distance)), here.quaternion)
        return Command(self.clock.now(), self.patience + 0.1 if ttl is None else ttl, target)

    def pushing_up(self, force: float, ttl: float) -> Command:
        """Stay, and push up with that force [N]."""
        stay = self.up(0.0, ttl)
        up = quat_rotate(quat_conjugate(stay.T_base_target.quaternion), np.array([0.0, 0.0, force]))
        return replace(stay, wrench=np.concatenate((up, np.zeros(3))))

    def arrives_at(self, command: Command) -> bool:
        """Whether it gets to the set-point in time."""
        end = self.clock.now() + round(self.patience * NS_PER_S)
        there = pytest.approx(command.T_base_target.position, abs=self.reach)
        while self.clock.now() < end:
            self.sleep(0.1)
            if self.position() == there:
                return True
        return False

    def moves(self) -> float:
        """How far it gets within 0.3 s [m]."""
        before = self.position()
        self.sleep(0.3)
        return float(np.linalg.norm(self.position() - before))


def refuses(robot: RobotUnderTest, command: Command) -> bool:
    try:
        robot.io.command(command)
    except ActionError:
        return True
    return False


class RobotIOContract:
    """The tests."""

    def test_stamps_rise_with_time_and_are_never_in_the_future(self, robot):
        stamps, ages = [], []
        for _ in range(5):
            robot.sleep(0.1)
            stamps.append(robot.io.read().stamp)
            ages.append(robot.clock.now() - stamps[-1])
        assert all(np.diff(stamps) > 0)
        assert min(ages) >= 0
        assert max(ages) <= robot.max_age * NS_PER_S

    def test_a_state_has_the_stated_shapes_and_is_finite(self, robot):
        state = robot.io.read()
        shapes = {"twist": (6,), "wrench": (6,), "joint_position": (robot.joints,), "joint_velocity": (robot.joints,)}
        shapes = {name: shapes[name] for name in robot.arrays}
        assert {name: getattr(state, name).shape for name in robot.arrays} == shapes
        assert (state.wrench is not None) == robot.measures_wrench
        assert state.T_base_tcp.position.shape == (3,)
        assert np.linalg.norm(state.T_base_tcp.quaternion) == pytest.approx(1.0, abs=1e-9)
        values = [getattr(state, name) for name in robot.arrays] + [state.T_base_tcp.position, [state.peak_force]]
        assert np.isfinite(np.concatenate(values)).all()
        assert isinstance(state.stamp, int)

    def test_states_belong_to_the_reader(self, robot):
        first = robot.io.read()
        mine = [getattr(first, name) for name in robot.arrays] + [
            first.T_base_tcp.position,
            first.T_base_tcp.quaternion,
        ]
        kept = [array.copy() for array in mine]
        robot.io.command(robot.up(0.02))
        robot.sleep(0.3)
        robot.io.read()
        assert all(np.array_equal(a, b) for a, b in zip(mine, kept, strict=True)), (
            "a later read changed an earlier state"
        )
        for array in mine:
            array[:] = np.nan
        assert np.isfinite(robot.position()).all()

    def test_it_goes_to_the_set_point(self, robot):
        command = robot.up(0.02)
        robot.io.command(command)
        assert robot.arrives_at(command)

    def test_an_expired_command_is_not_followed_any_more(self, robot):
        start = robot.position()
        robot.io.command(robot.up(0.1, ttl=0.1))
        robot.sleep(0.1 + robot.settle)
        assert 0.001 < np.linalg.norm(robot.position() - start) < 0.08
        assert robot.moves() < 0.0005

    def test_a_new_command_replaces_the_old_one_and_its_expiry(self, robot):
        old, new = robot.up(-0.02, ttl=0.1), robot.up(0.02)  # from rest, both
        robot.io.command(old)
        robot.io.command(new)
        assert robot.arrives_at(new)

    def test_a_bad_command_is_refused_and_nothing_moves(self, robot):
        before = robot.position()
        for change in BAD_COMMANDS:
            good = robot.up(0.05)
            pose = {"position": good.T_base_target.position, "quaternion": good.T_base_target.quaternion}
            command = {"stamp": good.stamp, "ttl": good.ttl, "gripper_width": None}
            for key, value in change.items():
                (pose if key in pose else command)[key] = value
            assert refuses(robot, Command(T_base_target=Pose(**pose), **command)), change
        robot.sleep(0.3)
        assert np.linalg.norm(robot.position() - before) < 0.0005

    def test_a_refused_command_leaves_the_present_one_in_force(self, robot):
        command = robot.up(0.02)
        robot.io.command(command)
        with pytest.raises(ActionError):
            robot.io.command(replace(robot.up(-0.02), ttl=0.0))
        assert robot.arrives_at(command)

    def test_stop_holds_and_may_come_twice(self, robot):
        start = robot.position()
        robot.io.command(robot.up(0.1, ttl=3.0))
        robot.sleep(0.1)
        robot.io.stop()
        robot.io.stop()
        robot.sleep(robot.settle)
        assert np.linalg.norm(robot.position() - start) < 0.08
        assert robot.moves() < 0.0005

    def test_stop_works_from_another_thread_while_the_loop_sleeps(self, robot):
        start, stopped = robot.position(), threading.Event()

        def stop_often():
            robot.io.stop()
            while not stopped.wait(0.001):  # without a wait, it would keep Python from whoever has to obey
                robot.io.stop()

        robot.io.command(robot.up(0.1, ttl=3.0))
        robot.sleep(0.05)
        thread = threading.Thread(target=stop_often)
        thread.start()
        try:
            robot.sleep(robot.settle)
        finally:
            stopped.set()
            thread.join()
        robot.sleep(robot.settle)  # over topics, stops may still be under way
        assert np.linalg.norm(robot.position() - start) < 0.08
        assert robot.moves() < 0.0005

    def test_a_command_after_stop_is_followed(self, robot):
        robot.io.stop()
        command = robot.up(0.02)
        robot.io.command(command)
        assert robot.arrives_at(command)

    def test_a_wrench_pushes_until_its_command_expires_and_then_the_arm_holds_without_it(self, robot):
        start = robot.position()
        if not robot.takes_wrench:
            with pytest.raises((ActionError, CommandRefusedError)) if robot.answers else contextlib.nullcontext():
                robot.io.command(robot.pushing_up(PUSH, ttl=0.3))
            assert robot.moves() < 0.0005
            return
        robot.io.command(robot.pushing_up(PUSH, ttl=0.3))
        robot.sleep(0.28)
        pushed = robot.position()
        assert (pushed - start)[2] > 0.002
        robot.sleep(0.1 + robot.settle)
        assert np.linalg.norm(robot.position() - pushed) < 0.002, "it holds where it was, and nothing pushes it on"
        assert robot.moves() < 0.0005

    def test_a_stop_ends_a_wrench_at_once_and_the_next_command_has_none(self, robot):
        if not robot.takes_wrench:
            return
        robot.io.command(robot.pushing_up(PUSH, ttl=3.0))
        robot.sleep(0.2)
        robot.io.stop()
        pushed = robot.position()
        robot.sleep(robot.settle)
        assert np.linalg.norm(robot.position() - pushed) < 0.002
        robot.io.command(robot.up(0.0, ttl=2.0))
        stay = robot.position()
        robot.sleep(robot.settle)
        assert np.linalg.norm(robot.position() - stay) < 0.001

    def test_a_stale_state_is_an_error_and_not_an_answer(self, robot):
        robot.sleep(0.1)
        robot.freeze()
        robot.io.read()  # not stale yet
        robot.sleep(robot.max_age + 0.05)
        with pytest.raises(StaleStateError) as caught:
            robot.io.read()
        assert caught.value.age > caught.value.max_age == robot.max_age

    def test_the_gripper_opens_and_closes_and_is_left_alone(self, robot):
        if not robot.gripper_width:
            assert robot.io.read().gripper_width == 0.0
            return
        for wanted in (0.0, robot.gripper_width):
            robot.io.command(replace(robot.up(0.0, ttl=2.0), gripper_width=wanted))
            robot.sleep(1.0)
            robot.io.command(robot.up(0.0, ttl=2.0))
            robot.sleep(0.5)
            assert robot.io.read().gripper_width == pytest.approx(wanted, abs=0.003)
