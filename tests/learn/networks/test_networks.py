import copy

import pytest
import torch
from torch import nn
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from robot_rl.errors import CheckpointError, ConfigError
from robot_rl.learn.networks.exploration_noise import ExplorationNoise
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import LOG_STD_HIGH, LOG_STD_LOW, Policy, StackedMLP, squashed_sample


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def policy(gripper: bool, seed: int = 0, exploration: float = 0.0) -> Policy:
    return Policy(
        head=StateHead(5),
        action_size=3,
        choices=3 if gripper else 0,
        hidden_sizes=(16, 16),
        generator=generator(seed),
        gripper_exploration=exploration,
    )


def randomized(net: nn.Module, seed: int = 1) -> nn.Module:
    """Moves scales, shifts and biases off their special starting values."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator(seed)))
    return net


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("hidden", [(), (8,), (8, 6)])
def test_each_member_is_a_plain_mlp(outputs, hidden):
    stack = randomized(StackedMLP(4, 5, hidden, outputs, generator()))
    x = torch.randn(7, 5, generator=generator(2))
    for i in range(4):
        layers: list[nn.Module] = []
        for linear, norm in zip([*stack.hidden, stack.last], [*stack.norms, None], strict=True):
            plain = nn.Linear(*linear.weight.shape[1:])
            plain.weight.data, plain.bias.data = linear.weight[i].detach().T, linear.bias[i, 0].detach()
            layers.append(plain)
            if norm is not None:
                layer_norm = nn.LayerNorm(norm.scale.shape[-1])
                layer_norm.weight.data, layer_norm.bias.data = norm.scale[i, 0].detach(), norm.shift[i, 0].detach()
                layers += [layer_norm, nn.ReLU()]
        torch.testing.assert_close(stack(x)[i], nn.Sequential(*layers)(x))


def test_members_are_independent():
    stack = StackedMLP(3, 5, (8, 8), 1, generator())
    x = torch.randn(7, 5, generator=generator(2))
    for i in range(3):
        gradients = torch.autograd.grad(stack(x)[i].square().sum(), list(stack.parameters()))
        for gradient in gradients:
            assert gradient[i].any()
            assert not gradient[[j for j in range(3) if j != i]].any()
    for linear in [*stack.hidden, stack.last]:
        assert not torch.equal(linear.weight[0], linear.weight[1])


def test_choosing_members_evaluates_those_only():
    stack = randomized(StackedMLP(4, 5, (8, 8), 1, generator()))
    x = torch.randn(7, 5, generator=generator(2))
    expected = stack(x)[[3, 1]].detach()
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter[[0, 2]] = torch.nan
    torch.testing.assert_close(stack(x, torch.tensor([3, 1])), expected)


def test_without_gradients_it_follows_whatever_becomes_of_its_parameters():
    stack = randomized(StackedMLP(3, 5, (8, 8), 1, generator()))
    x = torch.randn(7, 5, generator=generator(2))

    def agrees(net):
        with torch.no_grad():
            return torch.allclose(net(x), expected(net))

    def expected(net):
        with torch.enable_grad():
            return net(x).detach()

    assert agrees(stack)
    randomized(stack, seed=3)  # in place
    assert agrees(stack)
    copied = copy.deepcopy(stack)
    randomized(copied, seed=4)
    assert agrees(copied)
    assert agrees(stack)
    stack.load_state_dict(copied.state_dict())
    assert agrees(stack)
    x = x.double()
    assert agrees(stack.double())


def test_stack_gradient_matches_finite_differences():
    stack = randomized(StackedMLP(2, 3, (4, 4), 1, generator())).double()
    x = torch.randn(5, 3, dtype=torch.float64, generator=generator(2)).requires_grad_()
    names = [name for name, _ in stack.named_parameters()]

    def value(x, *parameters):
        return torch.func.functional_call(stack, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(value, (x, *stack.parameters()))


def test_log_prob_matches_torch_distributions():
    mean, log_std, noise = (torch.randn(50, 3, dtype=torch.float64, generator=generator(i)) for i in range(3))
    action, log_prob = squashed_sample(mean, log_std, noise)
    reference = TransformedDistribution(Normal(mean, log_std.exp()), TanhTransform())
    # the reference inverts the tanh, which loses digits near +-1
    torch.testing.assert_close(log_prob, reference.log_prob(action).sum(-1), rtol=1e-5, atol=1e-7)


def test_log_prob_is_finite_where_tanh_saturates():
    mean = torch.tensor([[40.0, -40.0]], requires_grad=True)
    action, log_prob = squashed_sample(mean, torch.zeros(1, 2), torch.zeros(1, 2))
    assert action.abs().max() <= 1
    assert log_prob.isfinite().all()
    assert torch.autograd.grad(log_prob.sum(), mean)[0].isfinite().all()


def test_log_prob_gradient_matches_finite_differences():
    mean, log_std, noise = (torch.randn(4, 2, dtype=torch.float64, generator=generator(i)) for i in range(3))
    assert torch.autograd.gradcheck(squashed_sample, (mean.requires_grad_(), log_std.requires_grad_(), noise))


def test_log_std_stays_within_its_bounds():
    net = policy(False)
    _, log_std = net(1e6 * torch.randn(100, 5, generator=generator()))
    assert log_std.min() >= LOG_STD_LOW
    assert log_std.max() <= LOG_STD_HIGH


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("gripper", [True, False])
def test_actions_are_within_their_range(gripper, deterministic):
    action = policy(gripper, exploration=0.5).act(torch.randn(200, 5), deterministic=deterministic)
    assert action.shape == (200, 3)
    assert not action.requires_grad
    assert action.abs().max() <= 1
    assert (set(action[:, -1].tolist()) <= {-1.0, 0.0, 1.0}) == gripper


def test_gripper_explores_as_often_as_asked():
    observation = torch.randn(1, 5, generator=generator()).expand(20_000, 5)
    greedy = policy(True).act(observation[:1], deterministic=True)[0, -1]
    share = (policy(True, exploration=0.3).act(observation, deterministic=False)[:, -1] != greedy).float().mean()
    assert abs(share.item() - 0.3 * 2 / 3) < 0.02  # one random draw in three is the greedy one
    still = policy(True, exploration=0.3).act(observation, deterministic=True)[:, -1]
    assert (still == greedy).all()


@pytest.mark.parametrize("times", [(), (0.0, 4.0)])
def test_a_policy_is_deployed_with_a_share_of_its_noise_that_follows_from_the_seed(times):
    rows = torch.randn(4000, 5, generator=generator())

    def played(share, seed):
        one = randomized(policy(True))
        one.deployed_noise, one.exploration = share, ExplorationNoise(times)
        one.generator.manual_seed(seed)  # exploration goes on as it will, and does not count
        one.begin(7)
        return torch.cat([one.act(rows[:2000], deterministic=True), one.act(rows[2000:], deterministic=True)])

    mean, half, whole = (played(share, seed=0) for share in (0.0, 0.5, 1.0))
    assert torch.equal(whole, played(1.0, seed=1))
    assert torch.equal(mean[:, -1], whole[:, -1]), "no choice is random"
    away = [(one - mean)[:, :2].abs().mean().item() for one in (half, whole)]
    assert 0 < away[0] < 0.75 * away[1]
    explored = randomized(policy(True)).act(rows, deterministic=False)
    assert abs((explored - mean)[:, :2].abs().mean().item() / away[1] - 1) < 0.1


def test_the_noise_of_an_episode_is_that_of_no_other():
    one = randomized(policy(False))
    one.deployed_noise = 1.0
    seen, actions = torch.randn(3, 5, generator=generator()), []
    for seed in (1, 2, 1):
        one.begin(seed)
        actions.append(one.act(seen, deterministic=True))
        actions.append(one.act(seen, deterministic=True))
    assert torch.equal(actions[0], actions[4])
    assert torch.equal(actions[1], actions[5])
    assert not torch.equal(actions[0], actions[1])
    assert not torch.equal(actions[0], actions[2])


def test_policy_state_carries_the_whole_behaviour_and_is_a_copy():
    a, b, observation = policy(True, seed=0), policy(True, seed=1), torch.randn(9, 5)
    state = a.policy_state()
    before = a.act(observation, deterministic=True)
    assert not torch.equal(before, b.act(observation, deterministic=True))
    randomized(a)
    b.load_policy_state(state)
    assert torch.equal(before, b.act(observation, deterministic=True))
    assert not any(value.requires_grad for value in state.values())


def test_errors_say_what_is_wrong():
    with pytest.raises(CheckpointError, match="another policy"):
        policy(True).load_policy_state(policy(False).policy_state())
    with pytest.raises(ConfigError, match="action_size 0 is no action"):
        Policy(head=StateHead(2), action_size=0, hidden_sizes=(4,), generator=generator())


def test_initialisation_follows_the_generator_and_leaves_the_global_one_alone():
    before = torch.get_rng_state()
    a, b, c = (policy(True, seed=seed).policy_state() for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert any(not torch.equal(a[name], c[name]) for name in a)
