"""A base that is cloned, and the bounded correction of its actions that SAC learns."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from robot_rl.config.components import BaseConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.errors import ConfigError
from robot_rl.learn.learner import Learner

TASK = EnvironmentSpec("line", max_steps=20, control_period=0.1, action_size=2)
BOUND = 0.25
CONFIG = TrainConfig(
    demonstrations=2,
    warmup_steps=0,
    update_to_data=4,
    sac=SACConfig(hidden_sizes=(32,), learning_rate=3e-3),
    base=BaseConfig(kind="clone", updates=400, bound=BOUND),
    replay=ReplayConfig(capacity=400, batch_size=32, history=(0,)),
)
UNKNOWN = (PerceptSpec(2), PerceptSpec(2, unscaled=((0, 2),)))
"""States of a declared scale, and of one that is measured."""


def demonstrated(state):
    return np.array([0.8, -0.5 * state[0]], np.float32)


def learner(percepts=UNKNOWN[0], seed=0, **changes):
    made = Learner(TASK, percepts, replace(CONFIG, seed=seed, **changes))
    rng = np.random.default_rng(0)
    for _ in range(2):
        state = rng.uniform(-1, 1, 2).astype(np.float32)
        made.demos.begin(Percept(state))
        for t in range(10):
            action, state = demonstrated(state), rng.uniform(-1, 1, 2).astype(np.float32)
            made.demos.append(Transition(action, float(t == 9), t == 9, False, 1), Percept(state))
    return made


def play(learner, steps, seed=1):
    """Steps in which less of the first action is rewarded."""
    rng = np.random.default_rng(seed)
    learner.begin(Percept(np.zeros(2, np.float32)))
    for _ in range(steps):
        state = torch.from_numpy(rng.uniform(-1, 1, (1, 2)).astype(np.float32))
        action = learner.policy.act(state, deterministic=False)[0].numpy()
        step = Transition(action, float(1 - abs(action[0] - 0.6)) * 0.1, False, False, 1)
        learner.append(step, Percept(rng.uniform(-1, 1, 2).astype(np.float32)))
        learner.catch_up()


STATES = torch.linspace(-1, 1, 20).reshape(10, 2)


def acts(learner, deterministic=True):
    return learner.policy.act(STATES, deterministic=deterministic)


@pytest.mark.parametrize("percepts", UNKNOWN)
def test_it_starts_as_its_base_and_the_base_as_the_demonstrator(percepts):
    mine = learner(percepts)
    mine.pretrain(400)
    wanted = torch.from_numpy(np.stack([demonstrated(state) for state in STATES.numpy()]))
    assert torch.equal(acts(mine), mine.policy.proposal(STATES, None))
    assert (acts(mine) - wanted).abs().mean() < 0.1
    assert (acts(mine, deterministic=False) - acts(mine)).abs().max() > 0


@pytest.mark.parametrize("percepts", UNKNOWN)
def test_the_correction_learns_within_its_bound_and_the_base_stays(percepts):
    mine = learner(percepts)
    mine.pretrain(400)
    before, base = mine.policy.base.policy_state(), acts(mine)
    play(mine, 150)
    after = mine.policy.base.policy_state()
    assert all(torch.equal(before[name], after[name]) for name in before)
    proposal = mine.policy.proposal(STATES, None)
    assert torch.equal(proposal, base), "moments of what came later do not change what the base sees"
    assert (acts(mine)[:, 0] < proposal[:, 0] - 0.05).all(), "less of the first action was rewarded"
    for deterministic in (True, False):
        assert (acts(mine, deterministic) - proposal).abs().max() <= BOUND + 1e-6


@pytest.mark.parametrize("cloned", [100, 400])
@pytest.mark.parametrize("percepts", UNKNOWN)
def test_a_saved_learner_continues_bit_for_bit(percepts, cloned):
    mine = learner(percepts)
    mine.pretrain(cloned)
    other = learner(percepts, seed=5)
    other.load_state_dict(mine.state_dict())
    for one in (mine, other):
        one.pretrain(400 - cloned) if cloned < 400 else None
        play(one, 6)
    states = [one.policy.policy_state() for one in (mine, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_the_bound_follows_its_schedule_and_that_of_a_fork():
    mine = learner(base=replace(CONFIG.base, bound={0: 0.1, 20: 0.3}))
    mine.pretrain(400)
    assert float(mine.policy.bound) == pytest.approx(0.1)
    play(mine, 10)
    assert float(mine.policy.bound) == pytest.approx(0.2, abs=0.02)
    other = learner(base=replace(CONFIG.base, bound=0.7))
    other.load_state_dict(mine.state_dict())
    play(other, 1)
    assert float(other.policy.bound) == pytest.approx(0.7)


def test_a_gripper_is_refused():
    task = replace(TASK, gripper=True, action_size=3)
    with pytest.raises(ConfigError, match="a base moves no gripper yet; choose a task without one"):
        Learner(task, PerceptSpec(2), CONFIG)
