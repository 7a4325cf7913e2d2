import pytest
from fakes import FakeRobot
from robot_io_contract import RobotIOContract, RobotUnderTest

from robot_rl.env.registry import make_workcell


def simulated(task, **facts):
    cell = make_workcell(task)
    cell.task.reset(seed=0)

    def freeze():
        cell.io.history.frozen = True

    return RobotUnderTest(
        cell.io, cell.clock, freeze, max_age=cell.io.sensing.max_age, joints=7, takes_wrench=True, **facts
    )


class TestSimulatedPeg(RobotIOContract):
    @pytest.fixture
    def robot(self):
        return simulated("peg_insert")


class TestSimulatedGripper(RobotIOContract):
    @pytest.fixture
    def robot(self):
        return simulated("cube_lift", gripper_width=0.08)


class TestFake(RobotIOContract):
    @pytest.fixture
    def robot(self):
        fake = FakeRobot()
        return RobotUnderTest(fake, fake.clock, fake.freeze, max_age=fake.max_age, joints=3)
