import numpy as np
import pytest
from tagged import ACTION_SIZE, PACKER, episode, percepts

from robot_rl.config.components import ReplayConfig
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.demo_mixing import DemoMixer
from robot_rl.data.schema import Source
from robot_rl.errors import DataError

P, H, S = Source.POLICY, Source.HUMAN, Source.SCRIPT


def buffer(*episodes):
    made = ReplayBuffer(1000, PACKER.size, ACTION_SIZE)
    for one in episodes:
        made.add_episode(one, percepts(one))
    return made


def demos():
    return buffer(episode(0, 10, sources=[S] * 10), episode(1, 10, sources=[S] * 10))


def online():  # 20 steps, of which 5 by a person
    return buffer(episode(5, 20, sources=[P] * 10 + [H] * 5 + [P] * 5, end="truncated"))


def mixer(demo_side, online_side, **config):
    config = {"batch_size": 64, "history": (0, 1), **config}
    return DemoMixer(demo_side, online_side, ReplayConfig(**config), n_step=2, discount=0.9)


def test_shapes_and_proportions():
    sample = mixer(demos(), online(), demo_fraction=0.25).sample(6, np.random.default_rng(0))
    assert sample.observation.shape == sample.next_observation.shape == (6, 64, 2 * PACKER.size)
    assert sample.action.shape == (6, 64, ACTION_SIZE)
    assert sample.reward.shape == sample.discount.shape == (6, 64)
    assert all(array.dtype == np.float32 for array in sample[:5])
    steps = sample.observation[..., 0]
    by_operator = (steps < 2000) | ((steps >= 5010) & (steps < 5015))
    assert by_operator[:, :16].all()  # the demonstration side
    assert (steps[:, 16:] >= 5000).all()  # the online side


def test_the_demonstration_side_is_uniform_over_demonstrations_and_interventions():
    sample = mixer(demos(), online(), demo_fraction=0.5).sample(1000, np.random.default_rng(1))
    values, counts = np.unique(sample.observation[:, :32, 0], return_counts=True)
    assert len(values) == 25
    assert abs(counts - 32_000 / 25).max() < 5 * np.sqrt(32_000 / 25)
    values, counts = np.unique(sample.observation[:, 32:, 0], return_counts=True)
    assert values.tolist() == list(range(5000, 5020))
    assert abs(counts - 32_000 / 20).max() < 5 * np.sqrt(32_000 / 20)


def test_every_row_is_one_transition():
    """Rows come from three index sets; each must keep its own columns together."""
    sample = mixer(demos(), online()).sample(50, np.random.default_rng(2))
    step = sample.observation[..., 0]
    ends = (step == 9) | (step == 1009) | (step == 5009) | (step == 5014) | (step == 5019)
    steps = np.where(ends, 1, 2)
    assert np.array_equal(sample.action[..., 0], step + np.float32(0.5))
    assert np.array_equal(sample.next_observation[..., 0], step + steps)
    assert np.allclose(sample.reward, step + 0.5 + (steps == 2) * 0.9 * (step + 1.5))
    terminated = step + steps == 10
    terminated |= step + steps == 1010
    assert np.allclose(sample.discount, np.where(terminated, 0.0, 0.9**steps))


def test_an_empty_side_is_replaced_by_the_other():
    rng = np.random.default_rng(0)
    only_demos = mixer(demos(), buffer()).sample(3, rng)
    assert (only_demos.observation[..., 0] < 2000).all()
    policy_only = buffer(episode(6, 10))
    only_online = mixer(buffer(), policy_only).sample(3, rng)
    assert (only_online.observation[..., 0] >= 6000).all()
    with pytest.raises(DataError, match="nothing to learn from"):
        mixer(buffer(), buffer()).sample(1, rng)


def test_interventions_alone_are_a_demonstration_side():
    sample = mixer(buffer(), online()).sample(20, np.random.default_rng(0))
    steps = sample.observation[:, :32, 0]
    assert ((steps >= 5010) & (steps < 5015)).all()


@pytest.mark.parametrize(("fraction", "low", "high"), [(0.0, 5000, 6000), (1.0, 0, 2000)])
def test_all_or_nothing(fraction, low, high):
    experience = buffer(episode(5, 20))  # no interventions
    steps = mixer(demos(), experience, demo_fraction=fraction).sample(4, np.random.default_rng(0)).observation[..., 0]
    assert ((steps >= low) & (steps < high)).all()


def test_the_same_generator_gives_the_same_batches():
    mixed = mixer(demos(), online())
    a, b = (mixed.sample(4, np.random.default_rng(7)) for _ in range(2))
    assert all(x.tobytes() == y.tobytes() for x, y in zip(a[:5], b[:5], strict=True))


def test_buffers_of_different_sizes_are_refused():
    with pytest.raises(DataError, match=r"sizes \(3, 2\), online experience \(4, 2\)"):
        mixer(demos(), ReplayBuffer(10, 4, ACTION_SIZE))
