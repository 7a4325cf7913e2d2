"""Step responses of an arm with known dynamics."""

import math

import numpy as np
import pytest
from lockstep_arm import LockstepArm

from robot_rl.commission.motion.arm_under_trial import ArmUnderTrial
from robot_rl.commission.motion.response import stands_after
from robot_rl.commission.motion.trace import Trace
from robot_rl.commission.step_responses import BEFORE, StepResponse, figures, step_responses
from robot_rl.config.command_limits import CommandLimits
from robot_rl.viz.step_response_plot import step_response_plot


def measured(**dynamics):
    arm = LockstepArm(**dynamics)
    return step_responses(ArmUnderTrial(arm, arm.clock, CommandLimits(), sample=0.005), 2)


def test_rise_and_lag_are_those_of_a_first_order_arm():
    responses, traces = measured(tau=0.08, dead_time=0.05)
    found = figures(responses)
    for axis in "xyz":
        assert len(responses[axis]) == len(traces[axis]) == 4
        # 10 mm at no more than 0.3 m/s, then exponential: 90 % after dead time + tau ln 10
        assert found[axis]["rise_ms"]["median"] == pytest.approx(1e3 * (0.05 + 0.08 * math.log(10)), abs=12)
        assert 50 < found[axis]["lag_ms"]["median"] < 160
        assert found[axis]["overshoot_mm"]["largest"] == pytest.approx(0.0, abs=0.01)
        assert found[axis]["steady_error_mm"]["largest"] < 0.05


def test_jitter_is_the_noise_and_a_sagging_arm_has_a_steady_error():
    noisy = figures(measured(noise=1e-4)[0])["x"]
    assert noisy["jitter_mm"]["median"] == pytest.approx(1e-1 * math.sqrt(3), rel=0.2)
    sagging = figures(measured(sag=0.02, tau=0.1)[0])["z"]
    assert sagging["steady_error_mm"]["median"] == pytest.approx(1e3 * 0.02 * 0.1, rel=0.1)


def test_a_step_that_is_never_reached_has_no_rise():
    assert math.isnan(figures(measured(tau=20.0)[0])["x"]["rise_ms"]["median"])


def test_one_step_that_is_never_reached_does_not_take_the_median_of_the_others():
    steps = [StepResponse(0.0, 0.0, 0.0, 0.0, rise) for rise in (0.1, 0.2, 0.3, math.nan)]
    rise = figures({"x": steps})["x"]["rise_ms"]
    assert rise["median"] == pytest.approx(250.0)
    assert math.isnan(rise["largest"])


def test_the_plot_is_a_picture(tmp_path):
    seconds = np.linspace(-BEFORE, 1.5, 50)
    step_response_plot({"x": [(seconds, seconds, seconds)] * 2}, tmp_path / "steps.png", "an arm")
    assert (tmp_path / "steps.png").read_bytes().startswith(b"\x89PNG")


def test_an_arm_that_goes_on_never_stands():
    seconds = np.arange(0.0, 3.0, 0.02)
    nothing = np.zeros((len(seconds), 3))
    moving = Trace(seconds, nothing, np.outer(seconds, [0.0, 0.0, 0.01]), nothing, nothing, seconds)
    assert math.isinf(stands_after(moving, 1.0)[0])
    stopped = Trace(seconds, nothing, np.outer(np.minimum(seconds, 1.5), [0, 0, 0.01]), nothing, nothing, seconds)
    after, way = stands_after(stopped, 1.0)
    assert after == pytest.approx(0.45, abs=0.03) and way == pytest.approx(0.005, abs=1e-4)
