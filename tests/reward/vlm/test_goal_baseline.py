import pytest
import torch

from robot_rl.reward.vlm.clip_backend import goal_baseline_reward, mean_direction

GOAL, BASE = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0])
ASIDE = torch.tensor([[0.6, 0.0, 0.8]])


def test_by_hand():
    """x - g = (-0.4, 0, 0.8); along d = (1, -1, 0)/sqrt 2 it is -0.4/sqrt 2: |P(x - g)|^2 = 0.08, |x - g|^2 = 0.8."""
    assert goal_baseline_reward(ASIDE, GOAL, BASE, 0.0).item() == pytest.approx(1 - 0.4)
    assert goal_baseline_reward(ASIDE, GOAL, BASE, 1.0).item() == pytest.approx(1 - 0.04)
    # P_alpha = 0.5 P + 0.5 I: the part along d stays, 0.08; the rest, 0.72, counts with 0.25
    assert goal_baseline_reward(ASIDE, GOAL, BASE, 0.5).item() == pytest.approx(1 - 0.5 * (0.08 + 0.25 * 0.72))


def test_without_a_baseline_it_is_the_cosine():
    x = torch.nn.functional.normalize(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), dim=-1)
    assert torch.allclose(goal_baseline_reward(x, GOAL, None, 0.0), x @ GOAL, atol=1e-6)


def test_the_goal_has_the_most_and_a_careless_baseline_turns_it_over():
    rewards = goal_baseline_reward(torch.stack([GOAL, BASE]), GOAL, BASE, 1.0)
    assert rewards[0] == 1.0 > rewards[1]
    beyond = torch.tensor([[0.8, -0.6, 0.0]])  # further along the line than the goal itself
    assert goal_baseline_reward(beyond, GOAL, BASE, 1.0) < 1.0


def test_phrasings_count_by_their_direction():
    assert torch.allclose(mean_direction(torch.tensor([[5.0, 0.0], [0.0, 1.0]])), torch.tensor([0.5**0.5, 0.5**0.5]))


@pytest.mark.parametrize("baseline", [None, GOAL])
def test_alpha_needs_a_baseline(baseline):
    with pytest.raises(ValueError, match="needs a baseline"):
        goal_baseline_reward(ASIDE, GOAL, baseline, 0.5)
