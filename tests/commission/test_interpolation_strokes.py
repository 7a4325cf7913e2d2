"""Strokes of a policy on an arm that follows set-points in a known way."""

import numpy as np
import pytest
from lockstep_arm import LockstepArm

from robot_rl.arm.set_point.set_point_path import SetPointPath
from robot_rl.commission.interpolation_strokes import best_interpolation, interpolation_strokes, stroke_figures
from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.robot_io import check_command
from robot_rl.errors import RobotLostError
from robot_rl.geometry import Pose


class InterpolatedArm(LockstepArm):
    """Its set-point is on its way, as `CommandFollower` has it."""

    def interpolate(self, kind):
        self.stop()
        self.path = SetPointPath(kind)

    def command(self, command):
        self.expires = check_command(command, self.clock.now())
        self.path.go(Pose(self.position, self.quaternion), command.T_base_target, self.clock.now())
        self.goal = self.path.at(self.clock.now()).position

    def step(self, seconds):
        if self.goal is not None:
            self.goal = self.path.at(self.clock.now()).position
        super().step(seconds)


def strokes_of(tau):
    arm = InterpolatedArm(tau=tau)
    under_trial = ArmUnderTrial(arm, arm.clock, CommandLimits(), sample=0.005, interpolate=arm.interpolate)
    return interpolation_strokes(under_trial, 1)


def test_a_stiff_arm_stops_and_goes_unless_its_set_point_goes_on():
    strokes = strokes_of(tau=0.01)
    assert {len(rows) for rows in strokes.values()} == {6}
    found = stroke_figures(strokes)
    assert found["none"]["made"]["median"] == pytest.approx(1.0, abs=0.05)
    assert found["none"]["ripple_mm"]["median"] > 0.8
    # on a line the arm is behind by its time constant, so it makes 1 / (1 + tau / period) of each action
    assert found["linear"]["made"]["median"] == pytest.approx(1 / 1.1, abs=0.05)
    assert found["linear"]["ripple_mm"]["median"] < 0.2
    assert best_interpolation(strokes) == "linear"


def test_an_arm_that_leaves_its_room_is_stopped_and_named():
    arm = InterpolatedArm(tau=0.01)
    arm.signs = 3.0 * arm.signs
    under_trial = ArmUnderTrial(arm, arm.clock, CommandLimits(), sample=0.005, interpolate=arm.interpolate)
    arm.path = SetPointPath("none")
    arm.command = lambda command: LockstepArm.command(arm, command)
    arm.step = lambda seconds: LockstepArm.step(arm, seconds)
    with pytest.raises(RobotLostError, match="went 30 mm from where it stood"):
        interpolation_strokes(under_trial, 1)


def test_for_a_soft_arm_it_is_not_worth_what_it_costs():
    strokes = strokes_of(tau=0.15)
    assert best_interpolation(strokes) == "none"
    assert np.median([one.made for one in strokes["linear"]]) < np.median([one.made for one in strokes["none"]])
