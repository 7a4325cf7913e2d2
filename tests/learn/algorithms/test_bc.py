import numpy as np
import pytest
import torch

from robot_rl.errors import DataError
from robot_rl.learn.algorithms import bc as cloning
from robot_rl.learn.networks.heads import StateHead
from robot_rl.learn.networks.networks import Policy

SETTINGS = {
    "steps": 400,
    "batch_size": 64,
    "learning_rate": 3e-3,
    "seed": 0,
}


def clone(observation, action, **settings):
    generator = torch.Generator().manual_seed(settings["seed"])
    policy = Policy(head=StateHead(4), action_size=3, choices=3, hidden_sizes=(32, 32), generator=generator)
    return policy, cloning.clone(policy, observation, action, **settings)


def data(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """20 episodes of 30 rows whose actions are a simple function of the observation."""
    observation = torch.randn(600, 4, generator=torch.Generator().manual_seed(seed))
    action = torch.stack(
        [observation[:, 0].tanh(), (-0.5 * observation[:, 1]).tanh(), observation[:, 2].clamp(-1, 1).round()], -1
    )
    return observation, action, np.repeat(np.arange(20), 30)


def test_it_fits_and_generalises():
    observation, action, episode = data()
    policy, info = clone(observation, action, episode=episode, **SETTINGS)
    new_observation, new_action, _ = data(seed=1)
    got = policy.act(new_observation, deterministic=True)
    assert (got - new_action)[:, :2].square().mean() < 0.02
    assert (got[:, 2] == new_action[:, 2]).float().mean() > 0.85
    assert info.validation_episodes == 4
    assert np.isfinite(info.validation_loss)


@pytest.mark.slow
def test_stopping_early_generalises_better_than_training_to_the_end():
    observation, action, episode = data()
    noise = torch.randn(action.shape, generator=torch.Generator().manual_seed(2))
    noisy = torch.cat([(action + noise)[:, :2].clamp(-1, 1), action[:, 2:]], -1)  # something to overfit
    settings = {**SETTINGS, "steps": 1000}
    early, info = clone(observation, noisy, episode=episode, **settings)
    late, _ = clone(observation, noisy, episode=episode, **{**settings, "validation_fraction": 0.0})
    assert info.best_step < 1000
    new_observation, new_action, _ = data(seed=1)
    error = [(p.act(new_observation, deterministic=True) - new_action)[:, :2].square().mean() for p in (early, late)]
    assert error[0] < 0.8 * error[1]


def test_held_out_episodes_never_train():
    observation, action, episode = data()
    marked = {name: torch.from_numpy(episode == name) for name in range(20)}
    settings = {**SETTINGS, "steps": 1, "batch_size": 600}
    base, _ = clone(observation, action, episode=episode, **settings)
    unmoved = 0
    for rows in marked.values():
        changed = torch.where(rows[:, None] & torch.tensor([True, True, False]), -action, action)
        policy, _ = clone(observation, changed, episode=episode, **settings)
        unmoved += all(torch.equal(a, b) for a, b in zip(policy.parameters(), base.parameters(), strict=True))
    assert unmoved == 4  # the held-out ones; every other episode has rows in this one batch of 600


def test_same_seed_same_policy_and_no_held_out_episode_if_not_wanted():
    observation, action, episode = data()
    settings = {**SETTINGS, "steps": 20, "validation_fraction": 0.0}
    a, info = clone(observation, action, episode=episode, **settings)
    b, _ = clone(observation, action, episode=episode, **settings)
    c, _ = clone(observation, action, episode=episode, **{**settings, "seed": 1})
    assert torch.equal(a.act(observation, deterministic=True), b.act(observation, deterministic=True))
    assert not torch.equal(a.act(observation, deterministic=True), c.act(observation, deterministic=True))
    assert (info.best_step, info.validation_episodes) == (20, 0)
    assert np.isnan(info.validation_loss)


def test_errors_say_what_is_wrong():
    observation, action, episode = data()
    with pytest.raises(DataError, match="none is left"):
        clone(observation, action, episode=np.zeros(600), **SETTINGS)
    with pytest.raises(DataError, match="equal lengths"):
        clone(observation, action[:5], episode=episode, **SETTINGS)
