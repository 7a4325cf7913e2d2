import math

import pytest
import torch

from robot_rl.config.components import EncoderConfig, IQLConfig, SACConfig
from robot_rl.data.replay.percept import ImageSpec, PerceptSpec, ToolElements
from robot_rl.errors import ConfigError
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.iql import IQLTrainer
from robot_rl.learn.algorithms.losses import expectile_loss, imitation_weight
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.heads import ImageHead, StateHead
from robot_rl.learn.networks.networks import Policy


def sac(states=1, actions=1, gripper=False):
    generator = torch.Generator().manual_seed(0)
    policy = Policy(
        head=StateHead(states),
        action_size=actions,
        choices=3 if gripper else 0,
        hidden_sizes=(32, 32),
        generator=generator,
    )
    return SAC(
        policy,
        return_range=(-10.0, 10.0),
        config=SACConfig(hidden_sizes=(32, 32), learning_rate=3e-3, target_rate=0.05),
    )


def test_the_losses_by_hand():
    u = torch.tensor([2.0, -1.0])
    assert expectile_loss(u, 0.7).item() == pytest.approx((0.7 * 4 + 0.3 * 1) / 2)
    assert expectile_loss(u, 0.5).item() == pytest.approx(u.square().mean().item() / 2)
    weight = imitation_weight(torch.tensor([1.0, -1.0]), 3.0, 100.0)  # standard deviation 1
    assert weight.tolist() == pytest.approx([math.exp(3), math.exp(-3)])
    assert imitation_weight(torch.tensor([10.0, -10.0, 0.0]), 30.0, 100.0).max().item() == 100.0
    assert imitation_weight(torch.zeros(4), 3.0, 100.0).tolist() == [1.0] * 4


def test_it_finds_the_better_of_the_recorded_actions_and_never_leaves_them():
    """One state, one step: actions -0.5 (reward 0) and 0.5 (reward 1) recorded equally often, none beyond."""
    learner, generator = sac(), torch.Generator().manual_seed(1)
    iql = IQLTrainer(learner, IQLConfig())
    for _ in range(800):
        good = torch.rand(1, 64, generator=generator) < 0.5
        logs = iql.update(
            Batch(
                observation=torch.ones(1, 64, 1),
                action=torch.where(good, 0.5, -0.5)[..., None],
                reward=good.float(),
                discount=torch.zeros(1, 64),
                next_observation=torch.ones(1, 64, 1),
            )
        )
    action = learner.policy.act(torch.ones(1, 1), deterministic=True).item()
    assert action == pytest.approx(0.5, abs=0.05)
    value = iql.value(torch.ones(1, 1)).item()
    assert value == pytest.approx(0.7, abs=0.07)  # the 0.7 expectile of {0, 1} with equal shares
    assert all(torch.isfinite(figure) for figure in logs.values())


@pytest.mark.slow
def test_what_follows_is_bootstrapped_by_the_state_value():
    """Two steps: state 0 -> state 1 -> end with reward 1. V(0) tends to gamma."""
    learner = sac()
    iql = IQLTrainer(learner, IQLConfig(expectile=0.5))
    states = torch.tensor([[[0.0], [1.0]]])
    batch = Batch(states, torch.zeros(1, 2, 1), torch.tensor([[0.0, 1.0]]), torch.tensor([[0.8, 0.0]]), 1 - states)
    for _ in range(1500):
        iql.update(batch)
    assert iql.value(torch.tensor([[1.0]])).item() == pytest.approx(1.0, abs=0.1)
    assert iql.value(torch.tensor([[0.0]])).item() == pytest.approx(0.8, abs=0.1)


def test_the_same_networks_go_on_online():
    learner = sac(2, 2)
    generator = torch.Generator().manual_seed(3)
    sizes = ((1, 8, 2), (1, 8, 2), (1, 8), (1, 8), (1, 8, 2))
    columns = tuple(torch.rand(size, generator=generator) for size in sizes)
    before = [parameter.clone() for parameter in learner.critic.parameters()]
    IQLTrainer(learner, IQLConfig()).update(Batch(*columns))
    assert any(not torch.equal(a, b) for a, b in zip(before, learner.critic.parameters(), strict=True))
    assert math.isfinite(learner.update(Batch(*columns))["critic_loss"].item())


def test_a_gripper_is_refused():
    with pytest.raises(ConfigError, match="does not learn a gripper"):
        IQLTrainer(sac(2, 2, gripper=True), IQLConfig())


@pytest.mark.parametrize("pose", [(), (0, 1)])
def test_a_head_that_sees_is_trained_by_the_critics_loss(pose):
    spec = ImageSpec("features", (4, 2, 5, 3, 3), "float16", maker="", size=96)
    generator = torch.Generator().manual_seed(0)
    head = ImageHead(
        6, PerceptSpec(6, spec, ToolElements(pose)), EncoderConfig(bottleneck=8, spatial_features=2), generator
    )
    policy = Policy(head=head, action_size=3, hidden_sizes=(16,), generator=generator)
    learner = SAC(policy, return_range=(0.0, 1.0), config=SACConfig(hidden_sizes=(16,), learning_rate=1e-2))
    before = head.kernel.detach().clone()
    states = torch.randn(2, 1, 8, 6, generator=generator)
    seen = torch.randn(2, 1, 8, *spec.view_shape, generator=generator).half()
    action, reward = torch.rand(1, 8, 3, generator=generator), torch.rand(1, 8, generator=generator)
    logs = IQLTrainer(learner, IQLConfig()).update(
        Batch(states[0], action, reward, torch.full((1, 8), 0.9), states[1], seen[0], seen[1])
    )
    assert not torch.equal(before, head.kernel)
    assert all(torch.isfinite(figure) for figure in logs.values())
