"""The contract of drivers over the example of docs/add/arm.md, and faults of its arm; crisp's is in tests/ros_nodes."""

import contextlib
import time

import numpy as np
import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest
from in_process_arm import WIDE_CAP, WIDE_LIMITS
from page_arm import PageArm
from scripted_arm import eventually

from robot_rl.arm.arm_robot_io import ArmRobotIO
from robot_rl.arm.driver import find_driver
from robot_rl.env.robot_io import Command
from robot_rl.errors import ArmStoppedError, RobotLostError, UnknownNameError
from robot_rl.geometry import Pose

pytestmark = pytest.mark.wall_clock

STANDS = 0.3
"""Time after a fault within which an arm has to stand [s]."""


@pytest.fixture
def page(tmp_path, monkeypatch):
    made = PageArm(tmp_path, monkeypatch)
    yield made
    made.peer.end()


class TestTheArmOfThePage(ArmDriverContract):
    @pytest.fixture
    def arm(self, page):
        assert find_driver("my_arm") is page.module.MyArm
        return ArmUnderTest(page.make)


@pytest.fixture
def io(page):
    made = ArmRobotIO(page.make, WIDE_LIMITS, WIDE_CAP)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("fault", "named", "lasts"),
    [
        ("stop", "protective stop", False),
        ("press", "emergency stop is pressed", True),
        ("cut", "connection is lost", True),
        ("freeze", "connection is lost", False),
    ],
)
def test_each_fault_is_named_holds_the_arm_and_ends_with_consent(io, page, fault, named, lasts):
    up = Pose(np.array([0.5, 0.0, 0.7]), io.read().T_base_tcp.quaternion)
    io.command(Command(io.wall.now(), 5.0, up))
    assert eventually(lambda: page.where()[2] > 0.25)
    page.where(fault)
    time.sleep(STANDS)
    held = page.where(fault)
    assert eventually(lambda: io.stopped)
    assert named in io.stopped
    with contextlib.suppress(RobotLostError):  # where nothing is measured
        io.command(Command(io.wall.now(), 5.0, up))  # not followed any more
    time.sleep(0.1)
    assert page.where(fault) == pytest.approx(held, abs=1e-4)
    if lasts:
        with pytest.raises(ArmStoppedError, match="is pressed" if fault == "press" else "no arm at|lost"):
            io.recover()
    page.where()
    io.recover()
    assert io.stopped is None
    assert eventually(lambda: io.parts.age("pose", io.wall.now()) < io.max_age)
    io.command(Command(io.wall.now(), 5.0, up))
    assert eventually(lambda: page.where()[2] > held[2] + 0.05)


def test_a_second_program_is_refused_and_the_first_goes_on(io, page):
    with pytest.raises(ArmStoppedError, match="end other programs"):
        ArmRobotIO(page.make, WIDE_LIMITS, WIDE_CAP)
    assert io.stopped is None
    assert io.read().T_base_tcp.position == pytest.approx(page.where(), abs=1e-4)


def test_an_arm_that_is_not_there_is_one_line(page):
    page.peer.end()
    with pytest.raises(ArmStoppedError, match=r"no arm at 127\.21.*refused.*check `host`"):
        page.make(type("Host", (), {"wall": None}))


def test_a_driver_that_is_not_installed_is_named():
    with pytest.raises(UnknownNameError, match=r"unknown driver 'crips'; valid: .*crisp.*; did you mean 'crisp'"):
        find_driver("crips")
