import numpy as np
import pytest
from tagged import ACTION_SIZE, PACKER, episode, percepts

from robot_rl.config.components import ReplayConfig
from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.demo_mixing import DemoMixer
from robot_rl.data.replay.robots_memory import RobotsMemory, name_in_fleet
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.errors import DataError, UnknownNameError

P, H = Source.POLICY, Source.HUMAN
OPTIONS = {"n_step": 2, "discount": 0.9, "history": (0, 1)}


def ring(rows):
    return ReplayBuffer(rows, PACKER.size, ACTION_SIZE)


def play(memory, robot, number, steps, **options):
    """Puts a tagged episode of a robot into its memory, step by step."""
    one = episode(number, steps, **options)
    first, *rest = percepts(one)
    memory.begin(first, name_in_fleet(robot, one.episode_id))
    for step, percept in zip(Transition.of_episode(one), rest, strict=True):
        memory.append(step, percept)


def fleet(shares=None, capacity=1000):
    """The first robot has three times the steps of the second; the third has none."""
    memory = RobotsMemory(capacity, shares or {"a": 1.0, "b": 1.0, "c": 1.0}, ring)
    play(memory, "a", 1, 30)
    play(memory, "b", 2, 20, sources=[P] * 15 + [H] * 5)
    play(memory, "a", 3, 30, sources=[H] * 3 + [P] * 27)
    return memory


def robots_of(sample):
    """Share of the second robot in a sample; every observation says of which episode it is."""
    return float(np.mean(sample.observation[..., 0] // 1000 == 2))


def test_robots_are_drawn_by_share_whoever_plays_more():
    even = fleet().sample(20_000, np.random.default_rng(0), **OPTIONS)
    assert robots_of(even) == pytest.approx(0.5, abs=0.02)
    uneven = fleet({"a": 3.0, "b": 1.0, "c": 9.0}).sample(20_000, np.random.default_rng(0), **OPTIONS)
    assert robots_of(uneven) == pytest.approx(0.25, abs=0.02)  # the third has no steps, and so no share yet


def test_within_a_robot_all_steps_are_alike():
    steps = fleet().sample(60_000, np.random.default_rng(1), **OPTIONS).observation[:, 0]
    of_a, counts = np.unique(steps[steps // 1000 != 2], return_counts=True)
    assert len(of_a) == 60
    assert abs(counts - 500).max() < 5 * np.sqrt(500)


def test_each_row_is_one_transition_of_its_own_ring():
    memory = fleet()
    ranks = np.random.default_rng(2).permutation(len(memory))
    sample = memory.gather(ranks, np.random.default_rng(0), **OPTIONS)
    step = sample.observation[:, 0]
    assert sorted(step) == [1000.0 + t for t in range(30)] + [2000.0 + t for t in range(20)] + [
        3000.0 + t for t in range(30)
    ]
    assert (sample.action == (step + 0.5)[:, None]).all()
    one = memory.gather(ranks[7:8], np.random.default_rng(0), **OPTIONS)
    assert one.observation[0, 0] == step[7]  # a rank is the same transition whatever is drawn beside it


def test_the_mixer_takes_corrections_of_all_robots_as_demonstrations():
    mixer = DemoMixer(ring(100), fleet(), ReplayConfig(batch_size=64), n_step=2, discount=0.9)
    sample = mixer.sample(500, np.random.default_rng(3))
    corrected, counts = np.unique(sample.observation[:, :32, 0], return_counts=True)
    assert corrected.tolist() == [2015.0, 2016.0, 2017.0, 2018.0, 2019.0, 3000.0, 3001.0, 3002.0]
    assert abs(counts - 2000).max() < 5 * np.sqrt(2000)
    assert np.mean(sample.observation[:, 32:, 0] // 1000 == 2) == pytest.approx(0.5, abs=0.03)


def test_steps_to_success_are_those_of_each_ring():
    assert fleet().operator_steps_to_success(np.arange(8)).tolist() == [29, 28, 27, 4, 3, 2, 1, 0]


def test_a_robot_that_plays_much_forgets_its_own_steps_only():
    memory = RobotsMemory(100, {"a": 1.0, "b": 1.0}, ring)
    play(memory, "b", 2, 20)
    for number in range(3, 20):
        play(memory, "a", number, 20)
    assert {name: len(one) for name, one in memory.robots.items()} == {"a": 40, "b": 20}


def test_a_label_reaches_the_episode_of_its_robot():
    memory = RobotsMemory(100, {"a": 1.0, "b": 1.0}, ring)
    play(memory, "a", 1, 3, end="truncated")
    play(memory, "b", 1, 3, end="truncated")
    assert memory.decide("b/episode-1", 1.0, terminated=True)
    assert not memory.decide("b/episode-9", 1.0, terminated=True)
    sample = memory.gather(np.array([2, 5]), np.random.default_rng(0), **OPTIONS)
    assert sample.discount.tolist() == [pytest.approx(0.9), 0.0]
    assert not memory.relabel("episode-00001", np.zeros(3))  # a demonstration, which is not in this memory
    assert not memory.decide("episode-00001", 1.0, True)


def test_it_is_saved_and_loaded_with_the_robots_that_have_come_since():
    saved = fleet().state_dict()
    loaded = RobotsMemory(2000, {"b": 1.0, "a": 1.0, "d": 1.0, "c": 1.0}, ring)
    loaded.load_state_dict(saved)
    assert {name: len(one) for name, one in loaded.robots.items()} == {"b": 20, "a": 60, "d": 0, "c": 0}
    with pytest.raises(DataError, match="steps of a, b, c, which the fleet no longer has"):
        RobotsMemory(100, {"d": 1.0}, ring).load_state_dict(saved)
    with pytest.raises(DataError, match="of a single robot"):
        loaded.load_state_dict(ring(10).state_dict())


def test_what_belongs_to_no_robot_is_refused():
    with pytest.raises(UnknownNameError, match="robot 'e'; valid: a, b, c"):
        play(fleet(), "e", 1, 3)
    with pytest.raises(DataError, match="hindsight_goals=0"):
        fleet().draw((3,), np.random.default_rng(0), others=5)
    with pytest.raises(DataError, match="no transitions"):
        RobotsMemory(10, {"a": 1.0}, ring).draw((3,), np.random.default_rng(0))
