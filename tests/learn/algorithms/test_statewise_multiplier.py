"""Who is followed, and where: an operator who is sure in one state and not in another."""

import pytest
import torch

from robot_rl.errors import CheckpointError
from robot_rl.learn.algorithms.statewise_multiplier import StatewiseMultiplier
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import Policy

SURE, UNSURE = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
ROWS = 64
STEPS = 250


def policy(chunk=1):
    generator = torch.Generator().manual_seed(1)
    return Policy(
        head=StateHead(2),
        action_size=2,
        choices=0,
        hidden_sizes=(4,),
        generator=generator,
        gripper_exploration=0.0,
        chunk=chunk,
    )


def minibatch(generator, plays, steps=1):
    """Half of the rows are of a state where the operator always does 0.5, half where it is -0.8 or 0.8."""
    latent = torch.stack([SURE, UNSURE]).repeat_interleave(ROWS // 2, 0)
    either = (torch.rand(ROWS, 1, generator=generator) < 0.5).float() * 1.6 - 0.8
    done = torch.where(latent[:, :1] > 0, 0.5, either).expand(ROWS, 2 * steps)
    return latent, torch.full((ROWS, 2 * steps), plays), done


def learned(plays, counts=None, chunk=1, steps=STEPS):
    torch.manual_seed(0)
    generator, multiplier = torch.Generator().manual_seed(0), StatewiseMultiplier(policy(chunk))
    counts = torch.ones(ROWS) if counts is None else counts
    for _ in range(steps):
        found = multiplier.learn(*minibatch(generator, plays, chunk), counts)
    return multiplier, found[0].item(), found[-1].item()


def test_a_sure_operator_is_followed_and_one_who_contradicts_himself_is_not():
    _, sure, unsure = learned(plays=0.2)
    assert sure > 0.95
    assert unsure < 0.3


def test_it_falls_where_the_policy_already_does_what_the_operator_does():
    _, sure, _ = learned(plays=0.5)
    assert sure < 0.85
    _, far, _ = learned(plays=-0.5)
    assert far > 0.95


def test_rows_that_nobody_demonstrated_teach_nothing():
    counts = torch.tensor([1.0, 0.0]).repeat_interleave(ROWS // 2)
    _, _, other = learned(plays=0.2, counts=counts)
    _, _, all_rows = learned(plays=0.2)
    assert other > all_rows


def test_of_a_chunk_what_was_not_demonstrated_is_not_compared():
    """The first of two actions alone was the operator's, and the policy does the same in it."""
    generator, multiplier = torch.Generator().manual_seed(0), StatewiseMultiplier(policy(2))
    latent, _, done = minibatch(generator, 0.0, 2)
    plays = done.clone()
    plays[:, 2:] = -1.0
    both = StatewiseMultiplier(policy(2))
    for _ in range(STEPS):
        first = multiplier.learn(latent, plays, done, torch.ones(ROWS))
        second = both.learn(latent, plays, done, torch.full((ROWS,), 2.0))
    assert first[0] < second[0]


def test_it_goes_on_bit_for_bit():
    multiplier, _, _ = learned(plays=0.2, steps=20)
    other = StatewiseMultiplier(policy())
    other.load_state_dict(multiplier.state_dict())
    batch = minibatch(torch.Generator().manual_seed(5), 0.2)
    for _ in range(3):
        assert torch.equal(multiplier.learn(*batch, torch.ones(ROWS)), other.learn(*batch, torch.ones(ROWS)))
    with pytest.raises(CheckpointError, match="there are no parameters of"):
        other.load_state_dict({"modules": {}})
