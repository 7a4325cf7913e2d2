"""The arm in real time: it keeps the wall clock's pace, thinks or no thinks, and everything else is as it was."""

import time

import numpy as np
import pytest
from robot_io_contract import RobotIOContract, RobotUnderTest

from robot_rl.clock import NS_PER_S, stands_still
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.run.control_timing import ControlTiming

pytestmark = pytest.mark.wall_clock

OPTIONS = WorkcellOptions(realtime=True)


class TestSimulatedArmInRealTime(RobotIOContract):
    @pytest.fixture
    def robot(self):
        cell = make_workcell("peg_insert", OPTIONS)
        cell.task.reset(seed=0)
        arm = cell.io.simulated

        def freeze():
            arm.history.frozen = True

        return RobotUnderTest(cell.io, cell.clock, freeze, max_age=arm.sensing.max_age, joints=7, takes_wrench=True)


def test_time_goes_on_while_nobody_sleeps():
    assert not stands_still(make_workcell("reach", OPTIONS).clock)
    assert stands_still(make_workcell("reach").clock)


def test_control_keeps_its_period_while_the_policy_thinks():
    env = RobotEnv(make_workcell("reach", OPTIONS), options=OPTIONS)
    timing = ControlTiming(env.spec_task.control_period)
    env.reset(seed=0)
    started, stamps = time.monotonic(), []
    for _ in range(20):
        time.sleep(0.03)
        *_, info = env.step(np.zeros(env.spec_task.action_size, np.float32))
        stamps.append((info["step"].recorded.stamp_obs, info["step"].recorded.stamp_action))
    elapsed = time.monotonic() - started
    seen, acted = np.array(stamps).T
    assert elapsed == pytest.approx(20 * env.spec_task.control_period, abs=0.15)
    assert np.diff(acted).mean() / NS_PER_S == pytest.approx(env.spec_task.control_period, abs=0.005)
    assert 0.03 <= np.median(acted - seen) / NS_PER_S <= 0.08  # thinking, and the sensors' delay
    assert timing.summary()["period_error_ms"] is None
    env.close()


def test_after_a_long_pause_it_goes_on_from_where_it_was():
    clock = make_workcell("reach", OPTIONS).clock
    before = clock.now()
    time.sleep(1.2)
    started = time.monotonic()
    assert clock.now() - before < 0.1 * NS_PER_S
    assert time.monotonic() - started < 0.1
