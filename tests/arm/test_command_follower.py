"""Commands and an arm that writes down what it is told."""

from dataclasses import replace

import numpy as np
import pytest

from robot_rl.arm.command_follower import CommandFollower
from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_io import Command
from robot_rl.errors import ActionError, StaleStateError
from robot_rl.geometry import Pose

DOWN = np.array([0.0, 1.0, 0.0, 0.0])


class Arm:
    def __init__(self):
        self.told = []

    def move_to(self, target):
        self.told.append(float(target.position[0]))

    def move_gripper(self, width):
        self.told.append(("gripper", width))

    def hold(self):
        self.told.append("hold")


@pytest.fixture
def arm():
    return Arm()


@pytest.fixture
def follower(arm):
    return CommandFollower(arm, max_age=0.2)


def command(at, x=0.5, ttl=0.3, width=None):
    return Command(at, ttl, Pose(np.array([x, 0.0, 0.2]), DOWN), width)


def test_a_command_is_followed_until_it_expires_and_then_the_arm_holds_once(arm, follower):
    assert follower.holds == "no command has come yet"
    follower.command(command(0), now=0, age=0.01)
    assert follower.holds is None
    follower.check(round(0.299 * NS_PER_S), age=0.01)
    assert arm.told == [0.5]
    for now in (0.3, 0.31, 5.0):
        follower.check(round(now * NS_PER_S), age=0.01)
    assert arm.told == [0.5, "hold"]
    assert follower.holds == "the last command has expired"


def test_a_new_command_replaces_the_expiry_of_the_old(arm, follower):
    follower.command(command(0, 0.1, width=0.02), now=0, age=0.0)
    follower.command(command(NS_PER_S // 10, 0.2), now=NS_PER_S // 10, age=0.0)
    follower.check(round(0.35 * NS_PER_S), age=0.0)
    assert arm.told == [0.1, ("gripper", 0.02), 0.2]
    follower.check(round(0.4 * NS_PER_S), age=0.0)
    assert arm.told[-1] == "hold"


def test_an_arm_that_is_not_measured_is_not_moved(arm, follower):
    with pytest.raises(StaleStateError, match=r"pose of the arm is 0\.300 s old"):
        follower.command(command(0), now=0, age=0.3)
    assert arm.told == []
    follower.command(command(0), now=0, age=0.1)
    follower.check(NS_PER_S // 10, age=0.25)
    assert arm.told == [0.5, "hold"]
    assert follower.holds == "it is not measured"


def test_a_refused_command_leaves_the_present_one_in_force(arm, follower):
    follower.command(command(0), now=0, age=0.0)
    for bad in (command(0, np.nan), command(0, ttl=0.0), command(-NS_PER_S)):
        with pytest.raises(ActionError):
            follower.command(bad, now=0, age=0.0)
    assert arm.told == [0.5]
    assert follower.holds is None


def test_a_stop_holds_and_may_come_twice(arm, follower):
    follower.stop("told to")
    assert arm.told == [], "nothing has been commanded, so nothing is taken back"
    follower.command(command(0), now=0, age=0.0)
    follower.stop("told to")
    follower.stop("told to")
    assert arm.told == [0.5, "hold"]
    assert follower.holds == "told to"


def test_between_commands_the_set_point_goes_on_and_a_hold_ends_its_way(arm):
    follower = CommandFollower(arm, max_age=0.2, interpolation="linear")
    here = Pose(np.array([0.4, 0.0, 0.2]), DOWN)
    follower.command(command(0), now=0, age=0.0, pose=here)
    for now in (0.05, 0.1, 0.15):
        follower.check(round(now * NS_PER_S), age=0.0)
    assert arm.told == pytest.approx([0.4, 0.45, 0.5])  # and nothing once it is there
    follower.command(command(NS_PER_S // 5, 0.6), now=NS_PER_S // 5, age=0.0, pose=here)
    follower.stop("a stop was requested")
    follower.check(round(0.25 * NS_PER_S), age=0.0)
    assert arm.told[3:] == [0.5, "hold"]


def test_a_driver_that_fails_is_told_to_hold_until_it_does(arm, follower):
    def fail(*_):
        raise OSError("the cable is out")

    follower.command(command(0), now=0, age=0.0)
    hold, arm.hold = arm.hold, fail
    for _ in range(2):
        with pytest.raises(OSError, match="cable"):
            follower.stop("a stop was requested")
        with pytest.raises(OSError, match="cable"):
            follower.check(1, age=0.0)
    arm.hold = hold
    follower.check(2, age=0.0)
    follower.check(3, age=0.0)
    assert arm.told == [0.5, "hold"]
    assert follower.holds == "a stop was requested"


def test_a_command_of_which_only_a_part_reached_the_arm_expires_too(arm, follower):
    def fail(width):
        raise OSError("the gripper is out")

    arm.move_gripper = fail
    with pytest.raises(OSError, match="gripper"):
        follower.command(command(0, width=0.02), now=0, age=0.0)
    follower.check(round(0.3 * NS_PER_S), age=0.0)
    assert arm.told == [0.5, "hold"]


def test_a_wrench_is_refused_and_the_command_before_stays_in_force(arm, follower):
    follower.command(command(0), now=0, age=0.01)
    pushing = replace(command(1), wrench=np.array([5.0, 0, 0, 0, 0, 0]))
    with pytest.raises(ActionError, match=r"feed-forward wrench, .* and drivers of arms follow set-points only"):
        follower.command(pushing, now=1, age=0.01)
    assert arm.told == [0.5]
    assert follower.holds is None
