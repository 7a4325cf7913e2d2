"""The guards of two arms as one: what must hold one holds both, and a command passes whole or not at all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.arm.several_guards import SeveralGuards
from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.command_limits import LATCHED, CommandGuard
from robot_rl.env.robot_io import Command, SetPoint
from robot_rl.errors import ActionError, CommandRefusedError, ConfigError
from robot_rl.geometry import Pose

LIMITS = CommandLimits()
DOWN = np.array([0.0, 1.0, 0.0, 0.0])
HERE = {"left": Pose(np.array([0.5, 0.0, 0.2]), DOWN), "right": Pose(np.array([0.4, 0.1, 0.3]), DOWN)}
NOW = 10 * NS_PER_S


class Cell:
    def __init__(self):
        self.guards = {arm: CommandGuard(LIMITS) for arm in HERE}
        self.both = SeveralGuards(self.guards)
        self.measure(NOW)

    def measure(self, stamp, **poses):
        for arm, guard in self.guards.items():
            guard.measured_pose(poses.get(arm, HERE[arm]), stamp)
            guard.measured_wrench(np.zeros(6), stamp)


def to(left=(0.0, 0.0, 0.0), right=(0.0, 0.0, 0.0), stamp=NOW, ttl=0.3):
    offsets = {"left": np.array(left), "right": np.array(right)}
    points = {arm: SetPoint(Pose(HERE[arm].position + offset, DOWN)) for arm, offset in offsets.items()}
    return Command.of_arms(stamp, ttl, points)


def test_a_command_within_the_limits_is_the_same_object():
    command = to((0.01, 0.0, 0.0), (0.0, -0.01, 0.0))
    assert Cell().both.check(command, NOW).command is command


def test_the_limits_of_one_arm_change_its_set_point_only_and_a_long_life_is_cut_for_both():
    guarded = Cell().both.check(to((0.1, 0.0, 0.0), (0.0, 0.01, 0.0), ttl=3.0), NOW)
    assert set(guarded.limited) == {"left speed", "left ttl", "right ttl"}
    points = guarded.command.arms
    lead = LIMITS.max_speed * LIMITS.reaction_time
    assert points["left"].T_base_target.position - HERE["left"].position == pytest.approx([lead, 0.0, 0.0])
    assert points["right"].T_base_target.position - HERE["right"].position == pytest.approx([0.0, 0.01, 0.0])
    assert guarded.command.ttl == LIMITS.max_ttl
    assert guarded.command.T_base_target is points["left"].T_base_target


@given(*[st.lists(st.floats(-2, 2), min_size=3, max_size=3)] * 2)
def test_each_arm_has_the_limits_that_it_has_alone(left, right):
    alone = {}
    for arm, offset in (("left", left), ("right", right)):
        guard = Cell().guards[arm]
        target = Pose(HERE[arm].position + np.array(offset), DOWN)
        alone[arm] = guard.check(Command(NOW, 0.3, target), NOW).command.T_base_target.position
    both = Cell().both.check(to(left, right), NOW).command.arms
    assert all(np.array_equal(both[arm].T_base_target.position, alone[arm]) for arm in HERE)


def test_what_holds_one_arm_holds_both_and_names_it():
    cell = Cell()
    later = NOW + NS_PER_S
    cell.guards["left"].measured_pose(HERE["left"], later)
    assert cell.both.stale(later) == "arm left: the arm's wrench is 1.00 s old, allowed are 0.20 s"
    cell.guards["left"].measured_wrench(np.zeros(6), later)
    with pytest.raises(CommandRefusedError, match=r"arm right: the arm's pose is 1\.00 s old"):
        cell.both.check(to(stamp=later), later)

    cell.measure(later + 1)
    cell.guards["right"].measured_wrench(np.array([90.0, 0, 0, 0, 0, 0]), later + 2)
    assert cell.both.tripped == "arm right: contact force of 90 N, allowed are 80 N"
    with pytest.raises(CommandRefusedError, match=f"{LATCHED}arm right: contact force"):
        cell.both.check(to(stamp=later + 3), later + 3)
    cell.both.release()
    cell.both.trip("the operator wants it")
    assert cell.both.tripped == "the operator wants it"
    cell.both.release()
    assert cell.both.tripped is None


def test_a_refusal_and_the_stop_after_it_leave_no_arm_ahead_of_the_other():
    cell = Cell()
    cell.measure(NOW + 1, right=Pose(np.array([0.704, 0.0, 0.2]), DOWN))
    assert cell.both.outside == pytest.approx(0.004)
    with pytest.raises(CommandRefusedError, match="arm left: it was made before the last one"):
        cell.guards["left"].stop(NOW + 5)
        cell.both.check(to(stamp=NOW + 4), NOW + 4)
    cell.both.stop(NOW + 6)
    later = NOW + NS_PER_S // 10
    cell.measure(later)
    assert cell.both.check(to((0.01, 0.0, 0.0), stamp=later), later).limited == ()


def test_a_command_for_other_arms_is_refused():
    with pytest.raises(ActionError, match="one set-point for the arms left, right"):
        Cell().both.check(Command(NOW, 0.3, HERE["left"]), NOW)


def test_a_limit_is_lowered_for_both():
    cell = Cell()
    assert cell.both.lower("max_speed", 0.1).max_speed == 0.1
    leads = cell.both.check(to((0.1, 0, 0), (0.1, 0, 0)), NOW).command.arms
    for arm, point in leads.items():
        assert np.linalg.norm(point.T_base_target.position - HERE[arm].position) <= 0.1 * LIMITS.reaction_time + 1e-12
    with pytest.raises(ConfigError, match="may only be lowered"):
        cell.both.lower("max_speed", 0.3)
