"""When a leader leads, and what it wants then."""

import numpy as np
import pytest

from robot_rl.clock import NS_PER_S
from robot_rl.geometry import Pose
from robot_rl.teleop.leader.leader_following import LeaderFollowing, LeaderStage

HERE = Pose(np.array([0.2, 0.0, 0.1]), np.array([0.0, 1.0, 0.0, 0.0]))
FAST, STILL = 1.0, 0.0


def moved(x=0.0, turn=0.0):
    return Pose(HERE.position + np.array([x, 0, 0]), HERE.quaternion) @ Pose.from_rotvec(
        np.zeros(3), np.array([turn, 0, 0])
    )


class Clock:
    def __init__(self):
        self.following, self.now = LeaderFollowing(), 0

    def view(self, leader, tool=HERE, speed=STILL, after=0.1):
        self.now += round(after * NS_PER_S)
        return self.following.view(leader, tool, speed, self.now)


@pytest.fixture
def clock():
    return Clock()


def test_a_leader_that_is_apart_does_not_lead_however_it_is_moved(clock):
    for leader in (moved(0.05), moved(0.0, 0.5)):
        view = clock.view(leader, speed=FAST)
        assert view.stage is LeaderStage.APART
        assert not view.axes.any()
    assert clock.view(moved(0.05)).distance == pytest.approx(0.05)
    assert clock.view(moved(0.0, 0.5)).angle == pytest.approx(0.5)


def test_an_aligned_leader_leads_once_it_is_moved(clock):
    assert clock.view(moved(0.01)).stage is LeaderStage.ALIGNED
    view = clock.view(moved(0.01), speed=FAST)
    assert view.stage is LeaderStage.LEADING
    assert view.axes == pytest.approx([0.5, 0, 0, 0, 0, 0])
    far = clock.view(moved(0.15), speed=FAST)  # the arm lags: it still leads, at full deflection
    assert far.stage is LeaderStage.LEADING
    assert far.axes == pytest.approx([1.0, 0, 0, 0, 0, 0])


def test_turns_are_about_the_axes_of_the_base(clock):
    clock.view(HERE, speed=FAST)
    view = clock.view(moved(0.0, 0.1))  # about x of the tool, which is x of the base here
    assert view.axes == pytest.approx([0, 0, 0, 0.1 / 0.15, 0, 0])


def test_it_lets_go_when_it_rests_and_the_arm_has_arrived(clock):
    clock.view(moved(0.02), speed=FAST)
    for _ in range(20):
        assert clock.view(moved(0.02)).stage is LeaderStage.LEADING, "the arm is still on its way"
    assert clock.view(moved(0.002)).stage is LeaderStage.LEADING
    for _ in range(6):
        view = clock.view(moved(0.002))
    assert view.stage is LeaderStage.ALIGNED
    # The policy moves the arm away; the leader, at rest, does not take it back.
    assert clock.view(HERE, tool=moved(0.1)).stage is LeaderStage.APART
    assert clock.view(HERE, tool=moved(0.1), speed=FAST).stage is LeaderStage.APART


def test_it_lets_go_of_an_arm_that_does_not_follow(clock):
    clock.view(HERE, speed=FAST)
    assert clock.view(moved(0.25), speed=FAST).stage is LeaderStage.APART
