import pytest
import torch

from robot_rl.learn.algorithms.adam import Adam, state_of_torch

RATE = 0.01


def parameters():
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(3, 4, generator=generator).requires_grad_(),
        torch.randn(4, generator=generator).requires_grad_(),
    ]


def loss(weight, bias):
    return (weight * torch.arange(12.0).view(3, 4) + bias).sin().square().mean()


def test_it_does_what_torchs_optimizer_does():
    mine, theirs = parameters(), parameters()
    ours, reference = Adam(mine, RATE), torch.optim.Adam(theirs, lr=RATE)
    for _ in range(20):
        ours.minimize(loss(*mine))
        reference.zero_grad()
        loss(*theirs).backward()
        reference.step()
        for one, other in zip(mine, theirs, strict=True):
            torch.testing.assert_close(one, other)
    assert all(parameter.grad is None for parameter in mine)


def test_what_has_no_part_in_a_loss_stays_as_it_is():
    weight, bias = parameters()
    optimizer, before = Adam([weight, bias], RATE), bias.detach().clone()
    with pytest.raises(RuntimeError, match="not have been used"):
        optimizer.minimize(weight.square().sum())
    optimizer.minimize(weight.square().sum(), allow_unused=True)
    assert torch.equal(bias, before)
    assert [float(step) for step in optimizer.state_dict()["steps"]] == [1.0, 0.0]


def test_it_goes_on_from_a_state():
    first, second = parameters(), parameters()
    one = Adam(first, RATE)
    for _ in range(3):
        one.minimize(loss(*first))
    for mine, given in zip(second, first, strict=True):
        mine.data.copy_(given)
    other = Adam(second, RATE)
    other.load_state_dict(one.state_dict())
    for optimizer, values in ((one, first), (other, second)):
        optimizer.minimize(loss(*values))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_it_goes_on_from_the_state_of_torchs_optimizer():
    mine, theirs = parameters(), parameters()
    reference = torch.optim.Adam(theirs, lr=RATE)

    def step():
        reference.zero_grad()
        loss(*theirs).backward()
        reference.step()

    step()
    for one, other in zip(mine, theirs, strict=True):
        one.data.copy_(other)
    ours = Adam(mine, RATE)
    ours.load_state_dict(state_of_torch(reference.state_dict()))
    ours.minimize(loss(*mine))
    step()
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_a_state_of_other_parameters_is_refused():
    weight, bias = parameters()
    state = Adam([weight], RATE).state_dict()
    with pytest.raises(ValueError, match="zip"):
        Adam([weight, bias], RATE).load_state_dict(state)
    with pytest.raises(RuntimeError):
        Adam([bias.detach()[:2]], RATE).load_state_dict(state)


def test_a_step_returns_the_norm_of_its_gradient():
    a, b, unused = (torch.ones(n, requires_grad=True) for n in (2, 3, 1))
    loss = 3.0 * a.sum() + 2.0 * b.sum()
    norm = Adam([a, b, unused], 1e-3).minimize(loss, allow_unused=True)
    assert norm.item() == pytest.approx((2 * 9 + 3 * 4) ** 0.5)
    assert not norm.requires_grad
