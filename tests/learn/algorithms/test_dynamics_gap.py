"""A planted gap between two dynamics is found, the steps that it concerns are weighed down, and nothing else is."""

import copy

import pytest
import torch

from robot_rl.config.components import SACConfig
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.critic_outputs import HLGauss, Scalar
from robot_rl.learn.algorithms.dynamics_gap import DynamicsGap
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import Policy

STATE, ACTION, ROWS = 2, 1, 256


def generator(seed):
    return torch.Generator().manual_seed(seed)


def minibatch(g, *, planted=True):
    """Half of the rows simulated, which start elsewhere. Left of 0 both move alike, right of 0 the robot only half."""
    simulated = (torch.arange(ROWS) % 2).float()
    state = torch.randn(ROWS, STATE, generator=g) + 0.5 * simulated[:, None]
    action = torch.rand(ROWS, ACTION, generator=g) * 2 - 1
    slow = planted & (simulated == 0) & (state[:, 0] > 0)
    push = torch.tensor([0.2, 0.1]) * torch.where(slow, 0.3, 1.0)[:, None]
    following = state + push + 0.02 * torch.randn(ROWS, STATE, generator=g)
    zeros = torch.zeros(ROWS)
    return Batch(state, action, zeros, zeros + 0.9, following, simulated=simulated, following=following)


@pytest.fixture(scope="module", params=[True, False])
def learned(request):
    gap, g = DynamicsGap(STATE, ACTION, 0.01, generator(1)), generator(2)
    for _ in range(500):
        gap.learn(minibatch(g, planted=request.param))
    batch = minibatch(generator(3), planted=request.param)
    ratio, figures = gap.learn(batch)
    return request.param, batch, gap.weights(ratio, batch.simulated), figures


def test_the_gap_is_found_where_it_is_and_nowhere_else(learned):
    planted, batch, weights, figures = learned
    simulated, right = batch.simulated > 0, batch.observation[:, 0] > 0.2
    left = batch.observation[:, 0] < -0.2
    assert (weights[~simulated] == 1).all()
    assert weights[simulated & left].mean() > 0.7
    assert (weights[simulated & right].mean() < 0.3) == planted
    assert weights[simulated].mean() == pytest.approx(float(figures["simulated_weight"]), abs=1e-6)


def test_a_sensor_whose_offset_gives_every_step_away_says_nothing_of_the_dynamics():
    gap, g = DynamicsGap(STATE, ACTION, 0.01, generator(1)), generator(2)

    def offset(batch):
        shift = 3.0 * batch.simulated[:, None]
        return batch._replace(observation=batch.observation + shift, following=batch.following + shift)

    for _ in range(500):
        gap.learn(offset(minibatch(g, planted=False)))
    _, figures = gap.learn(offset(minibatch(generator(3), planted=False)))
    assert figures["simulated_weight"] > 0.8


def test_values_of_what_the_gap_concerns_are_held_down_against_those_of_the_robot():
    gap = DynamicsGap(STATE, ACTION, 0.5, generator(0))
    values = torch.zeros(2, 4, requires_grad=True)
    simulated, ratio = torch.tensor([0.0, 0.0, 1.0, 1.0]), torch.tensor([0.0, -9.0, 0.0, -3.0])
    gap.penalty(values, ratio, simulated).backward()
    expected = torch.tensor([-0.25, -0.25, 0.0, 0.5])  # w times (omega softmax over simulated rows, - 1 / robot's rows)
    torch.testing.assert_close(values.grad, expected.expand(2, 4), atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", [0.0, 1.0])
def test_a_minibatch_of_one_kind_holds_nothing_down(kind):
    gap, values = DynamicsGap(STATE, ACTION, 0.5, generator(0)), torch.randn(2, 4, requires_grad=True)
    held = gap.penalty(values, torch.randn(4), torch.full((4,), kind))
    held.backward()
    assert held.item() == 0
    assert (values.grad == 0).all()


@pytest.mark.parametrize("outputs", [Scalar(), HLGauss((0.0, 1.0), torch.device("cpu"))])
def test_rows_count_by_their_weight(outputs):
    given, target = torch.randn(2, 6, outputs.count, generator=generator(0)), torch.rand(6, generator=generator(1))
    weight = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    kept = outputs.loss(given[:, weight > 0], target[weight > 0])
    torch.testing.assert_close(outputs.loss(given, target, weight), kept / 2)
    torch.testing.assert_close(outputs.loss(given, target, torch.ones(6)), outputs.loss(given, target))


def sac(gap):
    policy = Policy(head=StateHead(STATE), action_size=ACTION, hidden_sizes=(8,), generator=generator(0))
    settings = SACConfig(hidden_sizes=(8,))
    made = DynamicsGap(STATE, ACTION, 0.01, policy.generator) if gap else None
    return SAC(policy, return_range=(0.0, 1.0), config=settings, gap=made)


def whole(seed):
    batch = minibatch(generator(seed))
    return Batch._make(None if column is None else column[None] for column in batch)


def test_sac_learns_with_it_and_continues_bit_for_bit():
    one = sac(gap=True)
    logs = one.update(whole(0))
    assert {"gap_loss", "simulated_weight"} <= logs.keys()
    state, other = copy.deepcopy(one.state_dict()), sac(gap=True)
    other.load_state_dict(state)
    for mine in (one, other):
        mine.update(whole(1))
    assert torch.equal(one.critic.last.weight, other.critic.last.weight)


def test_without_it_nothing_changes():
    plain, told = sac(gap=False), sac(gap=False)
    plain.update(whole(0)._replace(simulated=None, following=None))
    told.update(whole(0))
    assert torch.equal(plain.critic.last.weight, told.critic.last.weight)
