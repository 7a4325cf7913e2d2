"""An arm in this process for tests: limits that no test of something else meets."""

import numpy as np
from robot_io_contract import RobotUnderTest
from scripted_arm import eventually

from robot_rl.config.command_limits import ArmCap, CommandLimits

WIDE_LIMITS = CommandLimits(
    box_low=(-2.0, -2.0, -2.0),
    box_high=(2.0, 2.0, 2.0),
    max_speed=2.0,
    max_turn_rate=10.0,
    max_acceleration=1e9,
    max_turn_acceleration=1e9,
    max_ttl=5.0,
    max_age=5.0,
)
WIDE_CAP = ArmCap(
    cap_box_low=(-2.0, -2.0, -2.0),
    cap_box_high=(2.0, 2.0, 2.0),
    cap_lead=1.0,
    cap_turn=4.0,
    cap_speed=10.0,
    cap_turn_rate=40.0,
)
AT_REST = 1e-2
"""Norm of the twist of an arm that stands still [m/s, rad/s]."""


def robot_under_test(io, freeze, **facts):
    """Return an `ArmRobotIO` as the contract wants it: measured, and at rest."""
    assert eventually(lambda: io.parts.age("pose", io.wall.now()) < 0.1)
    if io.stopped:
        io.recover()
    assert eventually(lambda: np.linalg.norm(io.read().twist) < AT_REST)
    return RobotUnderTest(io, io.wall, freeze, max_age=io.max_age, **facts)


def come_to_rest(robot):
    """Wait until an arm stands still that goes on creeping for a while, as a weak one or one with slow physics."""
    still = 0
    while still < 2:
        still = still + 1 if robot.moves() < 1e-4 else 0
