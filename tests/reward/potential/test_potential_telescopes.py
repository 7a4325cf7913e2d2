"""Shaping by the progress of a head: it telescopes over an episode and leaves every comparison of episodes as it is."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_rl.reward.heads.progress_head import MOST_FRAMES, ProgressHead, ProgressNet
from robot_rl.reward.potential.progress_potential import ProgressPotential
from robot_rl.reward.shaping import shaped_reward

FEATURES = 5


def make_head(seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net, basis = ProgressNet(3).eval(), torch.randn(FEATURES, 3)
        torch.nn.init.normal_(net.last.weight)
    return ProgressHead("random", 64, "front", "push", (), torch.zeros(FEATURES), basis, net)


def potentials(head, scale, features):
    so_far = ProgressPotential(head, scale).begin()
    return np.array([so_far(one) for one in features])


def episode(seed, steps, start):
    """Features of an episode that begins with the given ones."""
    later = torch.randn(steps, FEATURES, generator=torch.Generator().manual_seed(seed))
    return torch.cat([start[None], later])


@settings(max_examples=20)
@given(st.integers(0, 50), st.integers(1, 25), st.floats(0.1, 2.0), st.floats(0.8, 0.99), st.booleans())
def test_the_return_changes_by_the_first_potential_alone(seed, steps, scale, discount, terminated):
    phi = potentials(make_head(seed), scale, episode(seed, steps, torch.zeros(FEATURES)))
    assert ((phi >= 0) & (phi <= scale)).all()
    reward = np.random.default_rng(seed).uniform(0, 1, steps)
    powers = discount ** np.arange(steps)
    change = powers @ (shaped_reward(reward, phi, terminated, discount) - reward)
    left = 0.0 if terminated else discount**steps * phi[-1]
    assert change == pytest.approx(left - phi[0], abs=1e-4)


@settings(max_examples=20)
@given(st.integers(0, 50), st.integers(1, 20), st.integers(1, 20))
def test_of_two_episodes_from_one_start_the_better_one_stays_the_better(seed, one, other):
    """Whatever the head computes on the way: both returns change by the same amount."""
    head, start, discount = make_head(seed), torch.ones(FEATURES), 0.95
    changes = []
    for number, steps in enumerate((one, other)):
        phi = potentials(head, 1.0, episode(100 * seed + number, steps, start))
        reward = np.random.default_rng(number).uniform(0, 1, steps)
        powers = discount ** np.arange(steps)
        changes.append(powers @ (shaped_reward(reward, phi, True, discount) - reward))
    assert changes[0] == pytest.approx(changes[1], abs=1e-4)


def test_episodes_do_not_share_a_past():
    potential = ProgressPotential(make_head(0), 1.0)
    frames = torch.randn(6, FEATURES, generator=torch.Generator().manual_seed(1))
    alone = potential.begin()
    wanted = [alone(one) for one in frames]
    first, second = potential.begin(), potential.begin()
    found = [(first(one), second(one)) for one in frames]
    assert found == [(value, value) for value in wanted]


@pytest.mark.parametrize("length", [1, MOST_FRAMES - 1, MOST_FRAMES, MOST_FRAMES + 1, 3 * MOST_FRAMES])
def test_the_scale_is_the_only_thing_that_it_scales(length):
    features = torch.randn(length, FEATURES, generator=torch.Generator().manual_seed(2))
    one, double = (potentials(make_head(3), scale, features) for scale in (1.0, 2.0))
    np.testing.assert_allclose(double, 2 * one, rtol=1e-6)
