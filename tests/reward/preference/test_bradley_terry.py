import math

import pytest
import torch

from robot_rl.errors import DataError
from robot_rl.reward.preference.bradley_terry import RewardEnsemble, preference_loss


def pairs(count, error, seed=0):
    """Moments of three features, of which the reward is the first; preferences are wrong with a chance of `error`."""
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randn(2, count, 3, generator=generator)
    wrong = torch.rand(count, generator=generator) < error
    return first, second, ((first[:, 0] > second[:, 0]) ^ wrong).float()


def rank_correlation(a, b):
    return torch.corrcoef(torch.stack([a.argsort().argsort().float(), b.argsort().argsort().float()]))[0, 1].item()


@pytest.mark.parametrize(("error", "least"), [(0.0, 0.97), (0.2, 0.9)])
def test_the_reward_behind_preferences_is_found_also_through_errors(error, least):
    ensemble = RewardEnsemble(3, torch.Generator().manual_seed(0), members=3, hidden_sizes=(32, 32))
    info = ensemble.fit(*pairs(500, error), steps=600, learning_rate=1e-3)
    moments = torch.randn(300, 3, generator=torch.Generator().manual_seed(5))
    assert rank_correlation(ensemble(moments), moments[:, 0]) > least
    assert info.loss < math.log(2)
    assert abs(info.accuracy - (1 - error)) < 0.12
    assert (info.pairs, info.held_out) == (500, 100)


def test_the_loss_is_the_one_computed_by_hand():
    """A tenth of the answers is given at random for the one, a tenth for the other: p = 0.1 + 0.8 sigmoid."""
    logits = torch.tensor([0.0, math.log(3), math.log(3), math.log(3)])
    expected = [-math.log(0.5), -math.log(0.7), -math.log(0.3), -0.5 * math.log(0.7) - 0.5 * math.log(0.3)]
    loss = preference_loss(logits, torch.tensor([1.0, 1.0, 0.0, 0.5]))
    torch.testing.assert_close(loss, torch.tensor(expected))


def test_no_single_answer_outweighs_all_others():
    logits = torch.tensor([-1000.0, 0.5], requires_grad=True)
    loss = preference_loss(logits, torch.ones(2))
    torch.autograd.backward(loss.sum())
    torch.testing.assert_close(loss[0], torch.tensor(math.log(10)))
    assert logits.grad[0] == 0.0 > logits.grad[1]


def test_members_disagree_where_nothing_was_labelled():
    ensemble = RewardEnsemble(3, torch.Generator().manual_seed(0), members=4, hidden_sizes=(32, 32))
    ensemble.fit(*pairs(500, 0.0), steps=300, learning_rate=1e-3)
    moments = torch.randn(200, 3, generator=torch.Generator().manual_seed(5))
    near_and_far = torch.cat([moments, 20 * moments])
    spread = ensemble.disagreement(near_and_far)
    assert spread[200:].mean() > spread[:200].mean()


def test_preferences_by_chance_teach_nothing_and_say_so():
    ensemble = RewardEnsemble(3, torch.Generator().manual_seed(0), members=3, hidden_sizes=(32, 32))
    info = ensemble.fit(*pairs(400, 0.5), steps=400, learning_rate=1e-3)
    assert info.loss > 0.6


def test_too_few_pairs_or_other_shapes_are_refused():
    ensemble = RewardEnsemble(3, torch.Generator())
    with pytest.raises(DataError, match="19 readable pairs are too few"):
        ensemble.fit(*pairs(19, 0.0))
    with pytest.raises(DataError, match="shapes"):
        ensemble.fit(torch.zeros(30, 2), torch.zeros(30, 2), torch.zeros(30))


def test_ties_pull_rewards_together():
    ensemble = RewardEnsemble(3, torch.Generator().manual_seed(0), members=3, hidden_sizes=(32, 32))
    first, second, _ = pairs(400, 0.0)
    info = ensemble.fit(first, second, torch.full((400,), 0.5), steps=300)
    assert info.accuracy is None
    assert ensemble(first).std() < 0.5
