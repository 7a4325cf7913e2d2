"""The bounded correction of a base's proposals, which SAC learns."""

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
GRASP = replace(TASK, choices=3, action_size=3)
BOUND = 0.25
CONFIG = TrainConfig(
    demonstrations=2,
    warmup_steps=0,
    update_to_data=4,
    sac=SACConfig(hidden_sizes=(32,), learning_rate=3e-3, exploration_times=(0.0,), gripper_exploration=0.0),
    base=BaseConfig(kind="chunk", bound=BOUND, penalty=0.0, gripper_margin=0.1),
    replay=ReplayConfig(capacity=400, batch_size=32, history=(1, 0)),
)


def spec_of(task):
    """State of the proposal, then two numbers."""
    return PerceptSpec(task.action_size + 2, proposal=(0, task.action_size))


def proposed(state):
    return np.array([0.9, -0.5 * state[0], -1.0], np.float32)


def percept(rng, task):
    state = rng.uniform(-1, 1, 2).astype(np.float32)
    return Percept(np.concatenate([proposed(state)[: task.action_size], state]))


def learner(task=TASK, seed=0, **changes):
    made = Learner(task, spec_of(task), replace(CONFIG, seed=seed, **changes))
    rng = np.random.default_rng(0)
    for _ in range(2):
        made.demos.begin(percept(rng, task))
        for t in range(10):
            action = np.append(rng.uniform(-1, 1, 2), 0)[: task.action_size]
            made.demos.append(Transition(action, float(t == 9), t == 9, False, 1), percept(rng, task))
    return made


def play(learner, steps, task=TASK, reward=lambda action: 0.1 * (1 - abs(action[0] - 0.6)), seed=1):
    rng = np.random.default_rng(seed)
    now = percept(rng, task)
    learner.begin(now)
    for _ in range(steps):
        stacked = torch.from_numpy(np.concatenate([now.state, now.state]))[None]
        action = learner.policy.act(stacked, deterministic=False)[0].numpy()
        now = percept(rng, task)
        learner.append(Transition(action, reward(action), False, False, 0), now)
        learner.catch_up()


def states(task=TASK):
    """Stacked states whose older proposal is another one."""
    rng = np.random.default_rng(3)
    rows = np.stack([percept(rng, task).state for _ in range(10)])
    return torch.from_numpy(np.concatenate([-rows, rows], 1))


def proposals(task=TASK):
    size = task.action_size
    return states(task)[:, size + 2 : 2 * size + 2]


def test_it_starts_as_its_base_with_some_exploration():
    policy = learner().policy
    assert torch.equal(policy.act(states(), deterministic=True), proposals())
    noise = (policy.act(states(), deterministic=False) - proposals()).abs()
    assert 0 < noise.max() <= BOUND + 1e-6


def test_the_correction_learns_within_its_bound():
    mine = learner()
    play(mine, 150)
    learned = mine.policy.act(states(), deterministic=True)
    assert (learned[:, 0] - proposals()[:, 0]).mean() < -0.1, "less of the first action was rewarded"
    for deterministic in (True, False):
        assert (mine.policy.act(states(), deterministic=deterministic) - proposals()).abs().max() <= BOUND + 1e-6


def test_a_penalty_keeps_the_policy_near_its_base_and_follows_its_schedule():
    lengths = []
    for penalty in (0.0, 0.5, 10.0):
        mine = learner(base=replace(CONFIG.base, penalty=penalty))
        play(mine, 150)
        lengths.append(float((mine.policy.act(states(), deterministic=True) - proposals()).abs().mean()))
    assert lengths[0] > 2 * lengths[1] > 2 * lengths[2], lengths
    scheduled = learner(base=replace(CONFIG.base, penalty={0: 1.0, 10: 0.0}))
    assert scheduled.algorithm.advance(5)["penalty"] == pytest.approx(0.5)
    play(scheduled, 10)
    unhindered = learner(base=replace(CONFIG.base, penalty=1.0))
    play(unhindered, 10)
    parameters = scheduled.policy.policy_state(), unhindered.policy.policy_state()
    assert any(not torch.equal(parameters[0][name], parameters[1][name]) for name in parameters[0])


def test_a_penalty_is_a_share_of_the_range_of_returns():
    wide = replace(TASK, return_range=(-3.0, 5.0))
    mine = learner(wide, base=replace(CONFIG.base, penalty={0: 0.25, 10: 0.25}))
    assert mine.algorithm.advance(0)["penalty"] == pytest.approx(2.0)


def test_where_that_is_not_known_a_penalty_follows_what_critics_expect():
    lengths = {}
    for size in (1.0, 30.0):
        for penalty in (0.0, 4.0):
            mine = learner(base=replace(CONFIG.base, penalty=penalty))
            play(mine, 150, reward=lambda action, size=size: size * (1 - abs(action[0] - 0.6)))
            correction = mine.policy.act(states(), deterministic=True) - proposals()
            lengths[size, penalty] = float(correction.abs().mean())
    assert lengths[1.0, 4.0] < 0.3 * lengths[1.0, 0.0], lengths
    assert lengths[30.0, 4.0] < 0.3 * lengths[30.0, 0.0], "a penalty of 4 would be nothing beside returns of 30"


def test_critics_see_the_proposal_and_what_was_carried_out():
    """The same executed action is valued by the proposal beside it, as it is part of the state."""
    mine = learner()
    other = states().clone()
    other[:, 4:6] = 0.0  # the newest proposal
    assert not torch.allclose(mine.algorithm.value(states(), None), mine.algorithm.value(other, None))


def test_a_saved_learner_continues_bit_for_bit():
    mine = learner()
    play(mine, 10)
    other = learner(seed=5)
    other.load_state_dict(mine.state_dict())
    for one in (mine, other):
        play(one, 6)
    saved = [one.policy.policy_state() for one in (mine, other)]
    assert all(torch.equal(saved[0][name], saved[1][name]) for name in saved[0])


def test_the_bound_follows_its_schedule_and_that_of_a_fork():
    mine = learner(base=replace(CONFIG.base, bound={0: 0.1, 20: 0.3}))
    assert float(mine.policy.bound) == pytest.approx(0.1)
    play(mine, 10)
    assert float(mine.policy.bound) == pytest.approx(0.2, abs=0.02)
    other = learner(base=replace(CONFIG.base, bound=0.7))
    other.load_state_dict(mine.state_dict())
    play(other, 1)
    assert float(other.policy.bound) == pytest.approx(0.7)


@pytest.mark.parametrize("task", [GRASP, replace(GRASP, choices=9, arms=("left", "right"))])
def test_the_grippers_are_the_bases_until_their_critics_expect_more_by_the_margin(task):
    policy = learner(task).policy
    assert torch.equal(policy.act(states(task), deterministic=True), proposals(task)), "closed, as proposed"
    usual = torch.zeros(10, task.choices)
    for gain, choice in ((0.05, 0), (0.15, 2)):
        values = usual.clone()
        values[:, 2] = gain
        assert (policy.gripper_choice(values, states(task)) == choice).all()


def test_the_gripper_learns_what_the_base_does_wrong():
    mine = learner(GRASP, sac=replace(CONFIG.sac, gripper_exploration=0.3))
    play(mine, 80, GRASP, reward=lambda action: 0.3 * float(action[2] == 1.0))
    assert (mine.policy.act(states(GRASP), deterministic=True)[:, 2] == 1.0).float().mean() > 0.8


def test_the_newest_observation_has_to_be_among_those_stacked():
    with pytest.raises(ConfigError, match=r"replay\.history=\[1\] with a base.*add 0"):
        learner(replay=replace(CONFIG.replay, history=(1,)))
