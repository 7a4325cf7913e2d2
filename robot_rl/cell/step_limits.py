"""Limits on commands that let the longest steps of a task through: the default ones, widened where it takes more.

They are for a simulated arm. What a real one may do is decided by whoever knows it, in its parameters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from robot_rl.config.command_limits import ArmCap, CommandLimits
from robot_rl.env.action_mapping import AXES
from robot_rl.env.feed_forward.wrench_border import BORDER_STIFFNESS, BORDER_TURN_STIFFNESS
from robot_rl.env.task import TaskSpec


class StepLimits(NamedTuple):
    """What has to be wider than the default; both are empty where every step passes already."""

    limits: dict[str, float]
    """Fields of `CommandLimits`."""
    cap: dict[str, float]
    """Fields of `ArmCap`."""


HELD = 1.15
"""By how much more a set-point may lead than a step is long: axes that the policy does not move are held in place."""


def step_limits(spec: TaskSpec) -> StepLimits:
    """Return what lets the steps of a task through.

    A step of length a is a lead of the set-point of a, so it takes a speed of a / `reaction_time`; from one step to the
    next, a period T later, the lead changes by up to 2 a, so it takes an acceleration of 2 a / (T `reaction_time`). A
    cap stays as much wider than its limit as it is by default. A feed-forward wrench, of which none is allowed by
    default, may be as large as the task's, and change from one way to the other within a period. To the cap on the
    measured speed it counts as a lead: of the wrench over the smallest stiffness that it is bounded for.

    Args:
        spec: The task; of several arms, the longest step of any of them counts.
    """
    usual, cap = CommandLimits(), ArmCap()
    time, widened = usual.reaction_time, StepLimits({}, {})
    arms = list(spec.each.values())
    way = max(arm.action_translation * _root(arm.action_axes, AXES[:3]) for arm in arms)
    turn = max(arm.action_rotation * _root(arm.action_axes, AXES[3:]) for arm in arms)
    for step, speed, acceleration, caps in (
        (way, "max_speed", "max_acceleration", ("cap_lead", "cap_speed")),
        (turn, "max_turn_rate", "max_turn_acceleration", ("cap_turn", "cap_turn_rate")),
    ):
        faster = step / time / getattr(usual, speed)
        if faster > 1.0:
            widened.limits[speed] = HELD * faster * getattr(usual, speed)
            widened.cap.update({name: HELD * faster * getattr(cap, name) for name in caps})
        needed = 2.0 * step / spec.control_period / time
        if needed > getattr(usual, acceleration):
            widened.limits[acceleration] = HELD * needed
    push = max(arm.action_force * _root(arm.wrench_axes, AXES[:3]) for arm in arms)
    torque = max(arm.action_torque * _root(arm.wrench_axes, AXES[3:]) for arm in arms)
    for wanted, what, lead, speed in (
        (push, "feedforward_force", way + push / BORDER_STIFFNESS, "cap_speed"),
        (torque, "feedforward_torque", turn + torque / BORDER_TURN_STIFFNESS, "cap_turn_rate"),
    ):
        if wanted:
            widened.limits[f"max_{what}"] = widened.cap[f"cap_{what}"] = wanted
            widened.limits["feedforward_rise"] = min(usual.feedforward_rise, 0.5 * spec.control_period)
            widened.cap[speed] = max(HELD * lead / time, widened.cap.get(speed, getattr(cap, speed)))
    return widened


def _root(chosen: tuple[str, ...], axes: tuple[str, ...]) -> float:
    """Return how much longer a vector along all axes that are chosen is than one along one of them."""
    return math.sqrt(len(set(axes) & set(chosen)))
