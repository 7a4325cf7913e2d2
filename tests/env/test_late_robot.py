"""A robot that is late with its measurements: what was acted on is never taken for what came of it."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import fake_workcell

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_env import WAIT, RobotEnv
from robot_rl.errors import StaleStateError

STILL = np.zeros(3, np.float32)


class LateRobot:
    """Hands on the same state again until a time comes; each read tells the peak of the force since the read before."""

    def __init__(self, robot):
        self._robot, self._until, self._last = robot, 0, None
        self.forces = []

    def delay(self, seconds):
        """Nothing new is measured for that long."""
        self._last = self._robot.read()
        self._until = self._robot.clock.now() + round(seconds * NS_PER_S)

    def read(self):
        now = self._robot.clock.now()
        state = self._last if now < self._until else self._robot.read()
        age = (now - state.stamp) / NS_PER_S
        if age > self._robot.max_age:
            raise StaleStateError(age, self._robot.max_age)
        return replace(state, peak_force=self.forces.pop(0) if self.forces else 0.0)

    def __getattr__(self, name):
        return getattr(self._robot, name)


@pytest.fixture
def late():
    """A robot that can be made late, and an environment in an episode with it."""
    cell = fake_workcell()
    io = LateRobot(cell.io)
    env = RobotEnv(replace(cell, io=io, operator=None))
    env.reset(seed=1)
    return io, env


def stamps(env, steps):
    return [env.step(STILL)[4]["step"].stamp_obs for _ in range(steps)]


def test_a_step_waits_for_a_measurement_that_is_newer_than_the_one_it_acted_on(late):
    io, env = late
    first = stamps(env, 1)[0]
    io.delay(0.15)
    started = env.clock.now()
    _, _, _, _, info = env.step(STILL)
    assert info["step"].stamp_obs >= started + round(0.15 * NS_PER_S)
    assert info["step"].stamp_obs < started + round(0.15 * NS_PER_S) + 2 * WAIT
    later = [first, info["step"].stamp_obs, *stamps(env, 5)]
    assert len(set(later)) == len(later)


def test_the_peak_of_the_force_is_that_of_all_reads(late):
    io, env = late
    io.delay(0.12)
    io.forces = [7.0, 1.0]
    assert env.step(STILL)[4]["step"].force_peak == 7.0


def test_when_nothing_comes_the_state_is_stale_and_the_arm_held(late):
    io, env = late
    io.delay(10.0)
    stops = io.stops
    with pytest.raises(StaleStateError):
        env.step(STILL)
    assert io.stops > stops
