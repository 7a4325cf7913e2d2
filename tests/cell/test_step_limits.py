"""Limits for the steps of a task: none are wider than needed, and with them the longest steps pass unchanged."""

from dataclasses import replace

import numpy as np
import pytest

from robot_rl.cell.step_limits import HELD, step_limits
from robot_rl.clock import NS_PER_S
from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.robot_io import Command
from robot_rl.env.task import TaskSpec, Workspace
from robot_rl.geometry import Pose, quat_from_rotvec, quat_multiply

HERE = Pose(np.array([0.5, 0.0, 0.2]), np.array([0.0, 1.0, 0.0, 0.0]))
USUAL = TaskSpec("usual", "do it", 50, 0.1, Workspace(low=(-0.1, -0.1, -0.1), high=(0.1, 0.1, 0.1), yaw=1.0, tilt=1.0))
FAST = replace(USUAL, control_period=0.05, action_translation=0.05, action_rotation=0.2)


def changed_by(limits, spec):
    """What limits change of the longest steps, to and fro."""
    guard, changed, period = CommandGuard(limits), set(), round(spec.control_period * NS_PER_S)
    for count in range(6):
        now = count * period
        guard.measured_pose(HERE, now)
        guard.measured_wrench(np.zeros(6), now)
        sign = 1.0 if count % 2 else -1.0
        turn = quat_from_rotvec(np.full(3, sign * spec.action_rotation))
        way = np.full(3, sign * spec.action_translation)
        target = Pose(HERE.position + way, quat_multiply(HERE.quaternion, turn))
        changed.update(guard.check(Command(now, 0.2, target), now).limited)
    return changed


def test_a_usual_task_needs_nothing_wider():
    assert step_limits(USUAL) == ({}, {})
    assert changed_by(CommandLimits(), USUAL) == set()


def test_with_wider_limits_the_longest_steps_pass_unchanged():
    assert changed_by(CommandLimits(), FAST) >= {"speed", "turn rate"}
    assert changed_by(CommandLimits(**step_limits(FAST).limits), FAST) == set()


def test_none_is_wider_than_it_has_to_be():
    limits = CommandLimits(**step_limits(FAST).limits)
    for name, what in (
        ("max_speed", "speed"),
        ("max_turn_rate", "turn rate"),
        ("max_acceleration", "acceleration"),
        ("max_turn_acceleration", "turn acceleration"),
    ):
        assert what in changed_by(replace(limits, **{name: 0.99 / HELD * getattr(limits, name)}), FAST)


def test_a_cap_stays_as_much_wider_as_it_is_by_default():
    limits, cap = CommandLimits(**step_limits(FAST).limits), ArmCap(**step_limits(FAST).cap)
    for wide, narrow in (("cap_speed", "max_speed"), ("cap_turn_rate", "max_turn_rate")):
        ratio = getattr(ArmCap(), wide) / getattr(CommandLimits(), narrow)
        assert getattr(cap, wide) / getattr(limits, narrow) == pytest.approx(ratio)
    assert cap.cap_lead / (limits.max_speed * limits.reaction_time) == pytest.approx(0.04 / 0.027)


def test_the_largest_wrench_of_a_task_passes_one_way_and_the_other_and_no_larger_one():
    spec = replace(FAST, wrench_axes=("x", "y", "yaw"), action_force=10.0, action_torque=2.0)
    widened = step_limits(spec)
    limits, cap = CommandLimits(**widened.limits), ArmCap(**widened.cap)
    assert limits.max_feedforward_force == cap.cap_feedforward_force == pytest.approx(10.0 * np.sqrt(2))
    assert limits.max_feedforward_torque == cap.cap_feedforward_torque == 2.0
    guard, largest = CommandGuard(limits), np.array([10.0, 10.0, 0.0, 0.0, 0.0, 2.0])
    for count in range(1, 6):
        now = round(count * spec.control_period * NS_PER_S)
        guard.measured_pose(HERE, now)
        guard.measured_wrench(np.zeros(6), now)
        command = Command(now, 0.2, HERE, wrench=largest * (-1) ** count)
        assert guard.check(command, now).command is command
    later = now + round(spec.control_period * NS_PER_S)
    assert guard.check(Command(later, 0.2, HERE, wrench=1.01 * command.wrench), later).limited == ("wrench",)
