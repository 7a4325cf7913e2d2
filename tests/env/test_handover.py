"""Control changes hands without a jump: the commanded velocity changes no faster than the limits say."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import SPEC, FakeOperator, fake_workcell
from hypothesis import given
from hypothesis import strategies as st

from robot_rl.data.schema import Source
from robot_rl.env.handover import Handover, HandoverLimits
from robot_rl.env.robot_env import RobotEnv

LIMITS = HandoverLimits(linear=0.5, angular=3.0)
SIX = replace(SPEC, action_axes=("x", "y", "z", "roll", "pitch", "yaw"), gripper=True)


def velocity(spec, action):
    """Commanded velocity of an action [m/s, rad/s]."""
    scale = np.repeat([spec.action_translation, spec.action_rotation], 3)[: len(spec.action_axes)]
    return action[: len(spec.action_axes)] * scale / spec.control_period


actions = st.lists(st.floats(-1, 1, width=32), min_size=7, max_size=7).map(lambda row: np.array(row, np.float32))


@given(st.lists(st.tuples(actions, st.booleans()), min_size=2, max_size=30))
def test_acceleration_is_bounded_until_what_is_wanted_is_reached_and_then_nothing_is_changed(rows):
    handover, before, leader = Handover(SIX, LIMITS), np.zeros(7, np.float32), False
    for wanted, led in rows:
        changed, was_blending = led != leader, handover.blending
        executed = handover.blend(wanted, led_by_operator=led)
        if changed or was_blending:
            acceleration = (velocity(SIX, executed) - velocity(SIX, before)) / SIX.control_period
            assert np.linalg.norm(acceleration[:3]) <= LIMITS.linear * (1 + 1e-4)
            assert np.linalg.norm(acceleration[3:]) <= LIMITS.angular * (1 + 1e-4)
        else:
            np.testing.assert_array_equal(executed, wanted)
        assert executed[6] == wanted[6], "the gripper is not blended"
        assert handover.blending == (not np.array_equal(executed, wanted))
        before, leader = executed, led


def test_from_full_speed_one_way_to_the_other_takes_the_time_that_the_limit_says():
    handover, forward = Handover(SPEC, LIMITS), np.array([1.0, 0.0, 0.0], np.float32)
    assert handover.blend(forward, led_by_operator=False)[0] == 1.0  # the policy starts as it wants
    executed = [float(handover.blend(-forward, led_by_operator=True)[0]) for _ in range(5)]
    assert executed == pytest.approx([0.5, 0.0, -0.5, -1.0, -1.0])  # 0.2 m/s at 0.5 m/s^2: 0.4 s


def test_in_the_environment_both_ways_and_as_recorded():
    cell = fake_workcell()
    env = RobotEnv(cell, interventions=True, handover=LIMITS)
    env.reset(seed=0)
    policy, steps = np.array([1.0, 1.0, 1.0], np.float32), []
    for _ in range(SPEC.max_steps):
        *_, terminated, truncated, info = env.step(policy)
        steps.append(info["step"].recorded)
        if terminated or truncated:
            break
    sources = [step.source for step in steps]
    switches = [t for t in range(1, len(steps)) if sources[t] != sources[t - 1]]
    assert any(sources[t] == Source.HUMAN for t in switches)
    assert any(sources[t] == Source.POLICY for t in switches)
    for t in switches:
        change = velocity(SPEC, steps[t].action) - velocity(SPEC, steps[t - 1].action)
        assert np.linalg.norm(change) / SPEC.control_period <= LIMITS.linear * (1 + 1e-4)
    assert all((step.action_policy == policy).all() for step in steps)


def test_an_operator_who_commands_nothing_is_recorded_as_a_hold():
    class Still(FakeOperator):
        def act(self, state, T_base_reset):
            super().act(state, T_base_reset)
            return np.zeros(3)

    cell = fake_workcell()
    env = RobotEnv(replace(cell, operator=Still(cell.task)), interventions=True)
    env.reset(seed=0)
    *_, info = env.step(np.ones(3, np.float32))
    assert (info["step"].recorded.source, info["step"].recorded.action.tolist()) == (Source.HOLD, [0.0, 0.0, 0.0])
    assert info["step"].recorded.action_policy.tolist() == [1.0, 1.0, 1.0]
