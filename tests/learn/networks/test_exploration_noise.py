"""Noise for exploration: standard normal at each moment, as correlated as its times say, and new in each episode."""

import math
from functools import partial

import pytest
import torch

from robot_rl.learn.networks.exploration_noise import ExplorationNoise

EPISODES, STEPS = 20_000, 40


def drawn(times, seed=0):
    """Return episodes of noise, (STEPS, EPISODES)."""
    fresh = partial(torch.randn, EPISODES, generator=torch.Generator().manual_seed(seed))
    noise = ExplorationNoise(times)
    return torch.stack([noise.draw(fresh) for _ in range(STEPS)])


@pytest.mark.parametrize("times", [(0,), (8,), (0, 4, 16), (2, 64)])
def test_it_is_standard_normal_at_each_moment_and_correlated_as_its_times_say(times):
    noise = drawn(times)
    assert noise.mean(1).abs().max() < 0.03
    assert (noise.std(1) - 1).abs().max() < 0.03
    assert (noise.abs() < 1).float().mean() == pytest.approx(math.erf(1 / math.sqrt(2)), abs=0.01)
    for lag in (1, 5, 20):
        found = (noise[:-lag] * noise[lag:]).mean()
        expected = sum(math.exp(-lag / time) if time else 0.0 for time in times) / len(times)
        assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("times", [(), (0,)])
def test_white_noise_is_what_was_drawn(times):
    generator = torch.Generator().manual_seed(0)
    assert torch.equal(drawn(times), torch.stack([torch.randn(EPISODES, generator=generator) for _ in range(STEPS)]))


def test_it_moves_where_white_noise_averages_out():
    spread = {times: drawn(times).mean(0).std() for times in [(0,), (0, 4, 16)]}
    assert spread[(0,)] == pytest.approx(1 / math.sqrt(STEPS), rel=0.03)
    assert spread[(0, 4, 16)] > 3 * spread[(0,)]


def test_after_a_restart_it_does_not_go_on_from_before():
    fresh = partial(torch.randn, EPISODES, generator=torch.Generator().manual_seed(0))
    noise = ExplorationNoise([64])
    before, going_on = noise.draw(fresh), noise.draw(fresh)
    noise.restart()
    assert (before * going_on).mean() > 0.9
    assert (going_on * noise.draw(fresh)).mean().abs() < 0.03
