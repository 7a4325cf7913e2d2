"""Limits on what is commanded to an arm, whichever way commands come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import STRICT, NonNegativeReal, PositiveReal, Real
from robot_rl.config.yaml_file import parse_yaml
from robot_rl.errors import ConfigError, UnknownNameError


@dataclass(frozen=True, config=STRICT)
class CommandLimits:
    """Limits on what is commanded. This is no certified safety function: keep the robot's own limits and its button."""

    box_low: tuple[Real, ...] = (0.3, -0.3, 0.0)
    """Least x, y, z of the set-point in the base frame [m]."""
    box_high: tuple[Real, ...] = (0.7, 0.3, 0.5)
    """Largest x, y, z of the set-point in the base frame [m]."""
    box_tolerance: PositiveReal = 0.005
    """How far the tcp may be outside the box before that latches a stop [m]."""
    max_speed: PositiveReal = 0.3
    """Of the tcp [m/s]: the set-point leads the measured pose by at most the way at this speed in `reaction_time`."""
    max_turn_rate: PositiveReal = 1.5
    """Of the tcp [rad/s], in the same way."""
    max_acceleration: PositiveReal = 6.0
    """Of the lead of the set-point [m/s^2]."""
    max_turn_acceleration: PositiveReal = 30.0
    """Of the lead of the set-point [rad/s^2]."""
    reaction_time: PositiveReal = 0.09
    """How long the arm takes to come to a set-point near by [s]."""
    max_ttl: PositiveReal = 0.3
    """Longest time for which a command may be followed [s]; a longer one is cut."""
    max_force: PositiveReal = 80.0
    """Contact force that latches the emergency stop [N]."""
    max_feedforward_force: NonNegativeReal = 0.0
    """Largest feed-forward force of a command [N]; a larger one is made smaller. 0: commands with one are refused."""
    max_feedforward_torque: NonNegativeReal = 0.0
    """The same of its torque [Nm]."""
    feedforward_rise: PositiveReal = 0.1
    """Shortest time in which force or torque grows from none to its largest [s]."""
    max_age: PositiveReal = 0.2
    """Oldest pose and wrench, of arms that could meet also twist, with which commands are let through [s]."""


_Limits = TypeVar("_Limits", bound=CommandLimits)


def parse_arm_limits(entries: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return in what the limits of single arms differ, by the arm's name.

    Args:
        entries: Each as ARM.LIMIT=VALUE, e.g. `left.max_speed=0.1`.

    Raises:
        ConfigError: if an entry is malformed, or says the same as another one.
        UnknownNameError: if an entry names no limit.
    """
    differing: dict[str, dict[str, Any]] = {}
    for entry in entries:
        key, equals, text = entry.partition("=")
        arm, dot, name = key.strip().rpartition(".")
        if not (equals and dot and arm):
            raise ConfigError(f"arm_limits: {entry!r} has to be ARM.LIMIT=VALUE, e.g. left.max_speed=0.1")
        if name not in CommandLimits.__dataclass_fields__:
            raise UnknownNameError("limit in arm_limits", name, CommandLimits.__dataclass_fields__)
        if name in differing.setdefault(arm, {}):
            raise ConfigError(f"arm_limits: {arm}.{name} appears twice")
        value = parse_yaml(text, f"arm_limits {entry!r}")
        differing[arm][name] = tuple(value) if isinstance(value, list) else value
    return differing


def limits_of_arm(limits: _Limits, arm: str, differing: Mapping[str, Mapping[str, Any]]) -> _Limits:
    """Return the limits of one of several arms.

    Args:
        limits: Those of all arms.
        arm: Its name.
        differing: As `parse_arm_limits` returns it.

    Raises:
        ConfigError: if a value is not valid.
    """
    changed: dict[str, Any] = dict(differing.get(arm, {}))
    try:
        return replace(limits, **changed)
    except ValidationError as error:
        wrong = "; ".join(f"{arm}.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"arm_limits: {wrong}") from error


LOWERABLE = (
    "max_speed",
    "max_turn_rate",
    "max_acceleration",
    "max_turn_acceleration",
    "max_ttl",
    "max_force",
)
"""Limits that may be lowered while an arm is driven; none is ever raised."""


@dataclass(frozen=True, config=STRICT)
class ArmCap:
    """Last cap on what an arm is commanded, where it is driven; the limits of the safety node have to be within it."""

    commander: str = "safety_node"
    """Node in the namespace of the cell that alone may command the arm."""
    cap_box_low: tuple[Real, ...] = (0.3, -0.3, 0.0)
    """Least x, y, z of a set-point in the base frame [m]; one that is further out than the tcp is refused."""
    cap_box_high: tuple[Real, ...] = (0.7, 0.3, 0.5)
    """Largest x, y, z of a set-point in the base frame [m]."""
    cap_lead: PositiveReal = 0.04
    """By how much a set-point may lead the tcp [m]; one further away is brought nearer."""
    cap_turn: PositiveReal = 0.2
    """The same for its orientation [rad]."""
    cap_speed: PositiveReal = 0.5
    """Of the tcp, as measured [m/s]; at a higher one the arm holds."""
    cap_turn_rate: PositiveReal = 2.5
    """Of the tcp, as measured [rad/s]."""
    cap_feedforward_force: NonNegativeReal = 0.0
    """Largest feed-forward force of a command [N]; one with more is refused."""
    cap_feedforward_torque: NonNegativeReal = 0.0
    """The same of its torque [Nm]."""
