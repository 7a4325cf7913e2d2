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
    return DemoMixer(demo_side, online_side, ReplayConfig(**config), n_step=2, discount=0.9, marked=True)


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


def test_rows_of_the_demonstration_side_are_marked_but_for_demonstrations_that_failed():
    side = buffer(episode(0, 10, sources=[S] * 10), episode(1, 10, sources=[S] * 10, end="truncated"))
    sample = mixer(side, online()).sample(50, np.random.default_rng(0))
    steps = sample.observation[:, :32, 0]
    assert np.array_equal(sample.demonstrated[:, :32], (steps < 1000) | (steps >= 5000))
    assert not sample.demonstrated[:, 32:].any()
    assert np.array_equal(sample.corrected[:, :32], steps >= 5000)
    assert not sample.corrected[:, 32:].any()
    nobody_knows = buffer(episode(1, 10, sources=[S] * 10, end="truncated"))
    assert mixer(nobody_knows, online()).sample(5, np.random.default_rng(0)).demonstrated[:, :32].all()


def test_pauses_and_what_a_policy_did_are_no_demonstration_and_excuse_no_failure():
    mixed = [H] * 3 + [Source.HOLD] * 2 + [P] * 2 + [S] * 3
    side = buffer(episode(0, 10, sources=mixed), episode(1, 10, sources=mixed, end="truncated"))
    sample = mixer(side, online()).sample(50, np.random.default_rng(0))
    steps = sample.observation[:, :32, 0]
    led = (steps < 3) | ((steps >= 7) & (steps < 1000)) | (steps >= 5000)
    assert np.array_equal(sample.demonstrated[:, :32], led)
    nobody_led = buffer(episode(0, 10), episode(1, 10, end="truncated"))
    sample = mixer(nobody_led, online()).sample(50, np.random.default_rng(0))
    steps = sample.observation[:, :32, 0]
    assert np.array_equal(sample.demonstrated[:, :32], (steps < 1000) | (steps >= 5000))


def test_buffers_of_different_sizes_are_refused():
    with pytest.raises(DataError, match=r"sizes \(3, 2\), online experience \(4, 2\)"):
        mixer(demos(), ReplayBuffer(10, 4, ACTION_SIZE))


def assisted():
    """Two episodes of 20 steps with the same five corrections: 5000 succeeds at its end, 6000 does not."""
    sources = [P] * 10 + [H] * 5 + [P] * 5
    return buffer(episode(5, 20, sources=sources), episode(6, 20, sources=sources, end="truncated"))


def shares(demo_side, **config):
    """How often each step was drawn for the demonstration side, as a share of a uniform draw over it."""
    made = mixer(demo_side, assisted(), **config)
    steps = made.sample(2000, np.random.default_rng(3)).observation[:, :32, 0]
    values, counts = np.unique(steps, return_counts=True)
    uniform = 64_000 / (len(demo_side) + 10)
    return dict(zip(values.astype(int).tolist(), (counts / uniform).tolist(), strict=True))


def test_all_corrections_count_by_default():
    drawn = shares(demos(), corrections="demonstration")
    assert sorted(drawn) == [*range(10), *range(1000, 1010), *range(5010, 5015), *range(6010, 6015)]
    assert max(drawn.values()) < 1.15


def test_corrections_of_failed_episodes_are_replaced_by_demonstrations():
    drawn = shares(demos(), corrections="successful")
    assert not [step for step in drawn if step >= 6000]
    assert [drawn[step] for step in range(5010, 5015)] == pytest.approx([1.0] * 5, abs=0.1)
    assert drawn[0] == pytest.approx(1.0 + 5 / 20, abs=0.1)  # a demonstration's share of the five that fell out


def test_a_correction_weighs_less_the_later_the_success():
    drawn = shares(demos(), corrections="return_weighted")
    by_hand = [0.9 ** (19 - index) for index in range(10, 15)]  # the discount of `mixer`; success after step 19
    assert [drawn[step] for step in range(5010, 5015)] == pytest.approx(by_hand, abs=0.1)
    assert not [step for step in drawn if step >= 6000]


def test_without_demonstrations_what_falls_out_is_replaced_by_online_steps():
    drawn = shares(buffer(), corrections="successful")
    assert drawn[5010] == pytest.approx(1.0 + 5 / 40, abs=0.1)
    assert [drawn[6010], drawn[6000]] == pytest.approx([5 / 40] * 2, abs=0.05)
