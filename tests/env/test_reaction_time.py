"""When a command goes out after its observation: evenly, however long thinking takes, as long as it is in time."""

import numpy as np
import pytest
from fakes import fake_workcell

from robot_rl.clock import NS_PER_S
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError

MS = NS_PER_S // 1000


def stamps(reaction_time, thinking_ms):
    """Stamps of observations and of their commands [ms], of a policy that thinks for so long each time."""
    cell = fake_workcell()
    env = RobotEnv(cell, options=WorkcellOptions(reaction_time=reaction_time))
    env.reset(seed=0)
    pairs = []
    for duration in thinking_ms:
        cell.clock.sleep_until(cell.clock.now() + duration * MS)
        *_, info = env.step(np.zeros(env.spec_task.action_size, np.float32))
        pairs.append((info["step"].recorded.stamp_obs // MS, info["step"].recorded.stamp_action // MS))
    env.close()
    return np.array(pairs).T


def test_commands_are_even_however_long_thinking_takes():
    thinking = [5, 40, 20, 49, 0, 30]
    seen, acted = stamps(0.05, thinking)
    assert (acted - seen).tolist() == [50] * 6
    assert np.diff(acted).tolist() == [100] * 5
    seen, acted = stamps(0.0, thinking)
    assert (acted - seen).tolist() == thinking


def test_a_command_that_is_late_goes_out_at_once_and_delays_no_other():
    seen, acted = stamps(0.05, [10, 80, 10])
    assert (acted - seen).tolist() == [50, 80, 50]
    assert np.diff(seen).tolist() == [100, 100]


def test_it_has_to_be_less_than_a_period():
    with pytest.raises(ConfigError, match=r"reaction_time=0.1 s is no less than the control period .* 0.1 s"):
        RobotEnv(fake_workcell(), options=WorkcellOptions(reaction_time=0.1))
