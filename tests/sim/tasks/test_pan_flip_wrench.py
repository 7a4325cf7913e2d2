"""The toss by a feed-forward wrench: as good as by steps, and by the wrench, not by the steps that are left."""

import numpy as np
import pytest
from play import always, guarded_demonstration, play, stage, steps

from robot_rl.cell.step_limits import step_limits
from robot_rl.config.command_limits import CommandLimits
from robot_rl.data.schema import Source
from robot_rl.env.command_limits import CommandGuard
from robot_rl.env.robot_io import Command
from robot_rl.errors import CommandRefusedError
from sim.tasks.pan_flip_wrench import WRENCH_SPEC


@pytest.fixture(scope="module")
def pan():
    env, cell = stage("pan_flip_wrench")
    yield env, cell
    env.close()


def test_the_operator_tosses_with_the_wrench_within_the_workspace(pan):
    env, cell = pan
    box, successes, pushed, out = WRENCH_SPEC.workspace, 0, 0.0, 0.0
    for seed in range(100, 112):
        start = None
        for info in steps(env, seed, always(env), demonstrate=True):
            recorded, position = info["step"].recorded, cell.io.controller.pose().position
            assert (recorded.source, recorded.action.shape) == (Source.SCRIPT, (6,))
            pushed = max(pushed, float(np.abs(recorded.action[3:]).max()))
            start = position if start is None else start
            out = max(out, float(np.max([np.subtract(box.low, position - start), position - start - box.high])))
        successes += info["step"].success
    assert successes >= 11
    assert pushed == 1.0
    assert out < 0.01


def test_without_the_wrench_the_same_steps_toss_nothing(pan, monkeypatch):
    env, cell = pan
    send = cell.io.command
    bare = lambda command: send(Command(command.stamp, command.ttl, command.T_base_target))  # noqa: E731
    monkeypatch.setattr(cell.io, "command", bare)
    assert not any(play(env, seed, demonstrate=True).success for seed in range(100, 104))


def test_the_last_check_lets_it_through_with_the_limits_that_a_bringup_gives_and_refuses_it_with_its_own(
    pan, monkeypatch
):
    env, cell = pan
    widened = step_limits(WRENCH_SPEC)
    assert widened.limits["max_feedforward_force"] == widened.cap["cap_feedforward_force"]
    with monkeypatch.context() as patch:
        infos, changed = guarded_demonstration(env, cell, 101, patch, CommandGuard(CommandLimits(**widened.limits)))
        assert infos[-1]["step"].success
        assert not changed
    with monkeypatch.context() as patch, pytest.raises(CommandRefusedError, match="max_feedforward_force is 0"):
        guarded_demonstration(env, cell, 101, patch, CommandGuard(CommandLimits()))


def test_it_has_a_period_of_50_ms_as_every_task_may():
    env, cell = stage("pan_flip_wrench")
    env.start(100, "e")
    stamps = [cell.clock.now()]
    for _ in range(20):
        env.advance(np.zeros(6, np.float32))
        stamps.append(cell.clock.now())
    assert np.diff(stamps) == pytest.approx(np.full(20, 50e6), abs=1e6)
    assert env.environment_spec.control_period == 0.05
