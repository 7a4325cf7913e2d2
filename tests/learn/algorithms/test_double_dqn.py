import copy

import pytest
import torch

from robot_rl.config.components import SACConfig
from robot_rl.env.choice import choice_of_entry, entry_of_choice
from robot_rl.errors import CheckpointError, ConfigError, SpecError
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.double_dqn import DoubleDQN
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import Policy

CHOICES = 4


def make(seed=0, size=1, choices=CHOICES, **config):
    settings = SACConfig(**{"hidden_sizes": (32,), "learning_rate": 1e-2, "target_rate": 0.1, **config})
    policy = Policy(
        head=StateHead(CHOICES),
        action_size=size,
        choices=choices,
        hidden_sizes=settings.hidden_sizes,
        generator=torch.Generator().manual_seed(seed),
        gripper_exploration=0.5,
    )
    return DoubleDQN(policy, return_range=(0.0, 2.0), config=settings)


def batch(seed=0, n=2, b=64):
    """In state i the choice i + 1 is worth 1, any other nothing; each step leads to state 0, with a discount of 1/4."""
    g = torch.Generator().manual_seed(seed)
    state, choice = (torch.randint(CHOICES, (n, b), generator=g) for _ in range(2))
    eye = torch.eye(CHOICES)
    return Batch(
        observation=eye[state],
        action=entry_of_choice(choice.float(), CHOICES).unsqueeze(-1),
        reward=(choice == (state + 1) % CHOICES).float(),
        discount=torch.full((n, b), 0.25),
        next_observation=eye[torch.zeros_like(state)],
    )


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_it_finds_the_choices_and_their_values():
    learner = make()
    for seed in range(150):
        logs = learner.update(batch(seed))
    policy, states = learner.policy, torch.eye(CHOICES)
    action = policy.act(states, deterministic=True)
    assert action.shape == (CHOICES, 1)
    assert [choice_of_entry(float(entry), CHOICES) for entry in action[:, 0]] == [1, 2, 3, 0]
    # V(s) = 1 + V(0) / 4, so V = 4/3 everywhere
    assert learner.value(states, None).tolist() == pytest.approx([4 / 3] * CHOICES, abs=0.05)
    expected = {"critic_loss", "q_mean", "q_spread", "td_error", "target_mean", "clamped", "critic_gradient"}
    assert logs.keys() == expected


def test_demonstrated_choices_are_made_where_no_reward_tells():
    learner, shown = make(imitation=1.0), batch()
    right = shown.reward
    shown = shown._replace(reward=torch.zeros_like(right), demonstrated=right)
    for _ in range(200):
        learner.update(shown)
    action = learner.policy.act(torch.eye(CHOICES), deterministic=True)
    assert [choice_of_entry(float(entry), CHOICES) for entry in action[:, 0]] == [1, 2, 3, 0]


def test_it_explores_among_all_choices():
    acted = make().policy.act(torch.zeros(2000, CHOICES), deterministic=False)[:, 0].unique()
    assert acted.tolist() == pytest.approx([-1, -1 / 3, 1 / 3, 1])


def test_a_saved_state_continues_bit_for_bit():
    a, b = make(0), make(7)
    a.update(batch())
    state = a.state_dict()
    before = copy.deepcopy(state)
    b.load_state_dict(state)
    for seed in (1, 2):
        a.update(batch(seed))
        b.update(batch(seed))
    assert same(a.policy, b.policy)
    assert not same(a.policy, make(7).policy)
    assert torch.equal(before["generator"], state["generator"])
    seen = torch.zeros(9, CHOICES)
    assert torch.equal(*(one.policy.act(seen, deterministic=False) for one in (a, b)))
    with pytest.raises(CheckpointError):
        a.load_state_dict({})
    with pytest.raises(CheckpointError, match="another policy: gripper"):
        make(choices=3).load_state_dict(state)


def test_it_and_sac_take_the_actions_that_are_theirs():
    with pytest.raises(ConfigError, match="nothing but choices"):
        make(size=2)
    with pytest.raises(ConfigError, match="choices alone"):
        SAC(make().policy, return_range=None, config=SACConfig())
    with pytest.raises(SpecError):
        make().update(batch()._replace(action=torch.zeros(2, 64, 2)))
