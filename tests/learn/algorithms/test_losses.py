import math

import torch

from robot_rl.env.choice import entry_of_choice
from robot_rl.learn.algorithms import losses
from robot_rl.learn.networks.networks import choice_index


def double(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def test_critic_target_by_hand():
    # three windows with gamma = 0.5: one step on, three steps on (a time-out ended it: it bootstraps), terminated
    reward = torch.tensor([1.0, 0.25, 1.0])
    discount = torch.tensor([0.5, 0.125, 0.0])
    next_values = torch.tensor([[4.0, 8.0, 100.0], [2.0, 16.0, -100.0]])
    target = losses.critic_target(reward, discount, next_values, None)
    assert target.tolist() == [1 + 0.5 * 2, 0.25 + 0.125 * 8, 1.0]


def test_critic_target_is_clamped_to_the_return_range():
    reward, discount = torch.tensor([0.0, 0.0, 0.0]), torch.ones(3)
    next_values = torch.tensor([[5.0, -5.0, 0.5]])
    assert losses.critic_target(reward, discount, next_values, (0.0, 1.0)).tolist() == [1.0, 0.0, 0.5]
    assert losses.critic_target(reward, discount, next_values, (-1.0, 2.0)).tolist() == [2.0, -1.0, 0.5]


def test_choice_target_chooses_online_and_values_with_the_targets():
    online = torch.tensor([1])  # their choice
    target = torch.tensor([[[9.0, 2.0, 9.0]], [[9.0, 4.0, 9.0]]])  # of choice 1 the smaller is 2
    reward, discount = torch.tensor([0.1]), torch.tensor([0.5])
    torch.testing.assert_close(losses.choice_target(reward, discount, online, target, None), torch.tensor([1.1]))
    assert losses.choice_target(reward, discount, online, target, (0.0, 1.0)).item() == 1.0
    assert losses.choice_target(reward, 0 * discount, online, target, None).item() == reward.item()


def test_choice_index_takes_noisy_entries():
    action = torch.tensor([[9.0, -1.0], [9.0, -0.93], [9.0, 0.0], [9.0, 0.04], [9.0, 0.9], [9.0, 1.0]])
    assert choice_index(action, 3).tolist() == [0, 0, 1, 1, 2, 2]
    entries = entry_of_choice(torch.arange(40.0), 40).unsqueeze(-1)
    assert choice_index(entries, 40).tolist() == list(range(40))


def test_values_of_picks_each_rows_choice():
    values = torch.arange(12.0).view(2, 2, 3)
    assert losses.values_of(values, torch.tensor([2, 0])).tolist() == [[2.0, 3.0], [8.0, 9.0]]


def test_critic_loss_sums_members_and_averages_transitions():
    values = torch.tensor([[1.0, 3.0], [0.0, 0.0]])
    assert losses.critic_loss(values, torch.tensor([0.0, 1.0])).item() == (1 + 4) / 2 + (0 + 1) / 2


def test_members_get_the_gradient_that_they_would_get_alone():
    values, target = double(3, 5), double(5, seed=1).detach()
    together = torch.autograd.grad(losses.critic_loss(values, target), values)[0]
    for i in range(3):
        alone = torch.autograd.grad(losses.critic_loss(values[i : i + 1], target), values)[0]
        torch.testing.assert_close(together[i], alone[i])
        assert not alone[[j for j in range(3) if j != i]].any()


def test_actor_loss_by_hand():
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])  # means over members 2 and 3
    log_prob = torch.tensor([0.5, 1.5])
    loss = losses.actor_loss(values, log_prob, torch.tensor(0.1))
    assert math.isclose(loss.item(), 0.1 * 1.0 - 2.5, rel_tol=1e-6)


def test_temperature_falls_while_entropy_is_above_target_and_rises_below():
    log_temperature = torch.tensor(-2.0, requires_grad=True)
    above = torch.autograd.grad(losses.temperature_loss(log_temperature, torch.tensor(1.0), -3.0), log_temperature)[0]
    below = torch.autograd.grad(losses.temperature_loss(log_temperature, torch.tensor(-5.0), -3.0), log_temperature)[0]
    torch.testing.assert_close(above.item(), 4 * math.exp(-2.0))
    assert below < 0 < above


def test_gradients_match_finite_differences():
    values, target, log_prob = double(3, 4), double(4, seed=1).detach(), double(4, seed=2)
    temperature, log_temperature = torch.tensor(0.3, dtype=torch.float64), double(1)
    assert torch.autograd.gradcheck(lambda v: losses.critic_loss(v, target), values)
    assert torch.autograd.gradcheck(lambda v, p: losses.actor_loss(v, p, temperature), (values, log_prob))
    entropy = torch.tensor(0.7, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda a: losses.temperature_loss(a, entropy, -3.0), log_temperature)


def test_other_choices_than_the_bases_are_worth_no_more_where_only_the_bases_was_made():
    values = torch.tensor([[[0.2, 0.5, 0.1], [0.4, 0.3, 0.0], [0.0, 0.9, 0.0]]], requires_grad=True)
    base, made = torch.tensor([0, 0, 0]), torch.tensor([0, 0, 1])  # in the last step somebody knew better
    loss = losses.base_choice_loss(values, base, made)
    torch.testing.assert_close(loss, torch.tensor(0.3**2 / 3))
    loss.backward()
    assert (values.grad[0].sign() == torch.tensor([[-1, 1, 0], [0, 0, 0], [0, 0, 0]])).all()


def test_a_choice_that_was_not_demonstrated_is_worth_less_by_a_margin():
    values = torch.tensor([[[0.2, 0.5, 0.1], [0.4, 0.1, 0.0], [0.0, 0.9, 0.0]]], requires_grad=True)
    made, counts = torch.tensor([0, 0, 0]), torch.tensor([1.0, 1.0, 0.0])
    loss = losses.demonstrated_choice_loss(values, made, counts, margin=0.1)
    torch.testing.assert_close(loss, torch.tensor((0.6 - 0.2 + 0.0) / 2))
    loss.backward()
    assert (values.grad[0].sign() == torch.tensor([[-1, 1, 0], [0, 0, 0], [0, 0, 0]])).all()


def test_imitation_is_a_mean_over_what_was_demonstrated():
    actions, done = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), torch.ones(3, 2)
    torch.testing.assert_close(losses.imitation_loss(actions, done, torch.tensor([1.0, 1.0, 0.0])), torch.tensor(1.5))
    assert losses.imitation_loss(actions, done, torch.zeros(3)) == 0.0
