"""The deployed mean of a policy: what it is a mean of, that it acts, and that it goes on where it was left."""

import pytest
import torch
from torch import nn

from robot_rl.config.components import EncoderConfig
from robot_rl.data.replay.percept import ImageSpec, PerceptSpec
from robot_rl.errors import CheckpointError
from robot_rl.learn.networks.heads import ImageHead, StateHead
from robot_rl.learn.networks.networks import Policy
from robot_rl.learn.networks.policy_average import PolicyAverage

SEEN = PerceptSpec(4, ImageSpec("features", (4, 2, 5, 3, 3), "float16", maker="", size=96))


def policy(head=None, hidden=(8,)):
    generator = torch.Generator().manual_seed(0)
    return Policy(head=head or StateHead(4), action_size=3, choices=3, hidden_sizes=hidden, generator=generator)


def change(net: nn.Module, seed: int) -> torch.Tensor:
    """Gives it new parameters, and returns them in one row."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return flat(net)


def flat(net: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


@pytest.mark.parametrize("share", [0.1, 0.25, 1.0])
def test_it_looks_back_on_the_share_that_is_asked_for(share):
    learns, steps = policy(), 400
    average = PolicyAverage(learns, share)
    for step in range(1, steps + 1):
        with torch.no_grad():
            for parameter in learns.parameters():
                parameter.fill_(step / steps)
        average.follow()
    # With weights that fade as n^(1/share - 1), the mean of when its parts were learned is 1 / (1 + share).
    torch.testing.assert_close(flat(average.policy), torch.full_like(flat(learns), 1 / (1 + share)), atol=0.01, rtol=0)


def test_a_share_of_one_is_the_mean_of_all():
    learns = policy()
    average, taken = PolicyAverage(learns, 1.0), []
    for seed in range(5):
        taken.append(change(learns, seed))
        average.follow()
        torch.testing.assert_close(flat(average.policy), torch.stack(taken).mean(0))


def test_a_share_of_nothing_is_the_newest_bit_for_bit():
    learns = policy()
    average = PolicyAverage(learns, 0.0)
    for seed in range(3):
        newest = change(learns, seed)
        average.follow()
        assert torch.equal(flat(average.policy), newest)


def test_it_stands_apart_from_the_policy_that_learns():
    learns = policy()
    average = PolicyAverage(learns, 0.5)
    average.follow()
    before = flat(average.policy)
    change(learns, 1)
    assert torch.equal(flat(average.policy), before)
    assert not any(parameter.requires_grad for parameter in average.policy.parameters())
    assert all(parameter.requires_grad for parameter in learns.parameters())


def test_how_features_are_standardised_is_no_mean():
    learns = policy(ImageHead(4, SEEN, EncoderConfig(), torch.Generator().manual_seed(0)))
    average = PolicyAverage(learns, 0.1)
    average.follow()
    learns.head.standardise(torch.randn(16, *SEEN.images.view_shape, generator=torch.Generator().manual_seed(3)) + 5)
    average.follow()
    assert torch.equal(average.policy.head.shift, learns.head.shift)
    assert torch.equal(average.policy.head.scale, learns.head.scale)


def test_it_goes_on_from_its_state():
    learns = policy()
    average, later = PolicyAverage(learns, 0.9), PolicyAverage(learns, 0.9)
    for seed in range(3):
        change(learns, seed)
        average.follow()
    later.load_state_dict(average.state_dict())
    for seed in range(3, 8):
        change(learns, seed)
        average.follow()
        later.follow()
        assert torch.equal(flat(later.policy), flat(average.policy))


def test_the_state_of_another_policy_is_refused():
    with pytest.raises(CheckpointError, match="another policy"):
        PolicyAverage(policy(), 0.5).load_state_dict(PolicyAverage(policy(hidden=(9,)), 0.5).state_dict())
