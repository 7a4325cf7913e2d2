"""The noise of a base's flow, which SAC learns: diffusion steering."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from robot_rl.config.components import AlgorithmConfig, BaseConfig, ReplayConfig, SACConfig, TrainConfig
from robot_rl.data.replay.percept import Percept, PerceptSpec
from robot_rl.data.replay.transition import Transition
from robot_rl.env.environment import EnvironmentSpec
from robot_rl.learn.learner import Learner
from robot_rl.learn.networks.chunk_network import make_chunk_network
from robot_rl.learn.networks.noise_steering import make_noise_steering

TASK = EnvironmentSpec("line", max_steps=20, control_period=0.1, action_size=2, return_range=(0.0, 1.0))
GRASP = replace(TASK, choices=3, action_size=3)
PERCEPTS = PerceptSpec(2)
SIDE, STEPS, BOUND = 0.7, 2, 1.5
CONFIG = TrainConfig(
    demonstrations=2,
    warmup_steps=0,
    update_to_data=4,
    algorithm=AlgorithmConfig(chunk=STEPS),
    sac=SACConfig(hidden_sizes=(32,), learning_rate=3e-3, discount=0.5, n_step=1, exploration_times=(0.0,)),
    base=BaseConfig(kind="chunk", correction="noise", horizon=4, history=2, penalty=0.0, bound=BOUND),
    replay=ReplayConfig(capacity=400, batch_size=32, history=(0, 1)),
)


def states(count=10, seed=3):
    return torch.from_numpy(np.random.default_rng(seed).uniform(-1, 1, (count, 4)).astype(np.float32))


@pytest.fixture(scope="module")
def base():
    """A flow that was shown to go to either side along x, and along y as the state is."""
    generator = torch.Generator().manual_seed(0)
    network = make_chunk_network(PERCEPTS, CONFIG, generator, horizon=4, history=2, action_size=2, flow=True)
    optimizer = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(500):
        seen = 2 * torch.rand(128, 4, generator=generator) - 1
        side = torch.where(torch.rand(128, generator=generator) < 0.5, -SIDE, SIDE)
        chunks = torch.stack([side, 0.5 * seen[:, 0]], -1)[:, None].expand(-1, 4, -1)
        noise, time = torch.randn(chunks.shape, generator=generator), torch.rand(128, generator=generator)
        loss = network.loss(network.condition(seen, None), chunks, noise, time)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network.requires_grad_(False)


def learner(flow, seed=0, **changes):
    made = Learner(TASK, PERCEPTS, replace(CONFIG, seed=seed, **changes))
    made.policy.steering.network.load_state_dict(flow.state_dict())
    rng = np.random.default_rng(0)
    for _ in range(2):  # of which nothing can be learned: none is rewarded
        made.demos.begin(percept(rng))
        for t in range(10):
            action = rng.uniform(-1, 1, 2).astype(np.float32)
            made.demos.append(Transition(action, 0.0, t == 9, False, 1), percept(rng))
    return made


def percept(rng):
    return Percept(rng.uniform(-1, 1, 2).astype(np.float32))


def play(learner, episodes, seed=1):
    """Play chunks that are rewarded where they go to the right, one an episode."""
    rng = np.random.default_rng(seed)
    for _ in range(episodes):
        now = percept(rng)
        learner.begin(now)
        stacked = torch.from_numpy(np.concatenate([now.state, now.state]))[None]
        chunk = learner.policy.chunk.split(learner.policy.act(stacked, deterministic=False)[0].numpy())
        for t, action in enumerate(chunk):
            last = t == len(chunk) - 1
            learner.append(Transition(action, float(last and action[0] > SIDE / 2), last, False, 0), percept(rng))
            learner.catch_up()


def chunks_of(base, noise):
    """What the base does with the same noise in all steps of a chunk, the first of them side by side."""
    whole = base.chunks(base.condition(states(), None), noise[:, None].expand(-1, 4, -1))
    return whole[:, :STEPS].clamp(-1, 1).flatten(1)


def test_before_learning_it_is_the_base_with_noise_that_is_drawn(base):
    policy = learner(base).policy
    assert torch.equal(policy.act(states(), deterministic=True), chunks_of(base, torch.zeros(10, 2)))
    before = policy.generator.get_state()
    played = policy.act(states(), deterministic=False)
    policy.generator.set_state(before)
    noise = BOUND * policy.sample(policy.head(states()))[0].detach()
    assert torch.allclose(played, chunks_of(base, noise))
    assert 0 < noise.abs().max() <= BOUND


def test_it_is_steered_into_the_mode_that_is_rewarded(base):
    either = chunks_of(base, torch.randn(10, 2, generator=torch.Generator().manual_seed(1)))[:, 0]
    assert (either > SIDE / 2).any() and (either < -SIDE / 2).any(), "the base goes to both sides"
    mine = learner(base)
    play(mine, 150)
    learned = mine.policy.act(states(100), deterministic=True)
    assert (learned[:, [0, 2]] > SIDE / 2).float().mean() > 0.95
    assert (learned[:, 1] - 0.5 * states(100)[:, 0]).abs().mean() < 0.15, "the rest is as it was demonstrated"
    kept = mine.policy.steering.network.state_dict()
    assert all(torch.equal(kept[name], value) for name, value in base.state_dict().items()), "the base stays"


def test_a_penalty_keeps_the_noise_small(base):
    lengths = []
    for penalty in (0.0, 10.0):
        mine = learner(base, base=replace(CONFIG.base, penalty=penalty))
        play(mine, 60)
        mean = mine.policy(mine.policy.head(states()))[0].detach()
        lengths.append(float(mean.tanh().abs().mean()))
    assert lengths[0] > 3 * lengths[1], lengths


def test_the_slope_along_the_noise_is_that_of_finite_differences(base):
    steering = make_noise_steering(TASK, PERCEPTS, CONFIG, torch.device("cpu"))
    steering.network.load_state_dict(base.state_dict())
    steering.double()
    condition = steering.condition(states(3).double(), None)
    noise = torch.full((3, 2), 0.1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: steering.actions(condition, w), noise)


def test_a_gripper_does_the_choice_that_is_nearest_and_has_a_slope():
    config = replace(CONFIG, algorithm=AlgorithmConfig(chunk=3))
    steering = make_noise_steering(GRASP, PERCEPTS, config, torch.device("cpu"))
    noise = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    actions = steering.actions(steering.condition(states(), None), noise).view(10, 3, 3)
    assert set(actions[..., -1].detach().unique().tolist()) <= {-1.0, 0.0, 1.0}
    assert actions[..., :-1].detach().unique().numel() > 10
    (slope,) = torch.autograd.grad(actions[..., -1].sum(), noise)
    assert slope.abs().max() > 0


def test_a_saved_learner_continues_bit_for_bit(base):
    mine = learner(base)
    play(mine, 8)
    other = Learner(TASK, PERCEPTS, replace(CONFIG, seed=5))
    other.load_state_dict(mine.state_dict())
    for one in (mine, other):
        play(one, 5)
    saved = [one.policy.policy_state() for one in (mine, other)]
    assert all(torch.equal(saved[0][name], saved[1][name]) for name in saved[0])
