"""Episodes dealt to the parts of a ring; every number says which episode and step it belongs to."""

from functools import partial

import numpy as np
import pytest
from tagged import ACTION_SIZE, PACKER, episode, percepts

from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.dealt_ring import DealtRing, joined, side_by_side
from robot_rl.data.replay.row_moments import RowMoments
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.errors import DataError

P, H = Source.POLICY, Source.HUMAN
OPTIONS = {"n_step": 2, "discount": 0.9, "history": (0, 1)}
LENGTHS = (12, 7, 30, 4, 4, 19, 8, 25, 11, 3)


def whole(capacity=1000, **options):
    return ReplayBuffer(capacity, PACKER.size, ACTION_SIZE, **options)


def parts(size, capacity=1000, **options):
    return [DealtRing(capacity, PACKER.size, ACTION_SIZE, rank=rank, size=size, **options) for rank in range(size)]


def play(rings, number, steps, *, undecided=False, **options):
    one = episode(number, steps, sources=[H] * (number % 3) + [P] * (steps - number % 3), **options)
    first, *rest = percepts(one)
    transitions = Transition.of_episode(one)
    if undecided:
        transitions[-1] = transitions[-1]._replace(undecided=True)
    for ring in rings:
        ring.begin(first, one.episode_id)
        for step, seen in zip(transitions, rest, strict=True):
            ring.append(step, seen)


def played(rings, lengths=LENGTHS, **options):
    for number, steps in enumerate(lengths):
        play(rings, number, steps, **options)
    return rings


def names(ring):
    return ring.state_dict()["episode_names"].tolist()


def assert_same(state, other):
    for name, column in other.items():
        np.testing.assert_array_equal(state[name], column, err_msg=name)


@pytest.mark.parametrize("size", [2, 3])
def test_every_episode_is_in_one_part_but_the_first_is_in_all(size):
    rings = played(parts(size))
    held = [names(ring) for ring in rings]
    assert all(one[0] == "episode-0" for one in held)
    assert sorted(name for one in held for name in one[1:]) == [f"episode-{n}" for n in range(1, len(LENGTHS))]
    lengths = [len(ring) for ring in rings]
    assert max(lengths) - min(lengths) <= max(LENGTHS)


def test_of_demonstrations_the_first_is_dealt_too():
    rings = played(parts(2, forgets=False))
    assert sorted(name for ring in rings for name in names(ring)) == [f"episode-{n}" for n in range(len(LENGTHS))]


@pytest.mark.parametrize("options", [{}, {"forgets": False}])
def test_joined_parts_are_the_whole_ring(options):
    one, *rings = played([whole(**options), *parts(3, **options)])
    assert_same(joined([ring.state_dict() for ring in rings]), one.state_dict())
    again = whole(**options)
    again.load_state_dict(joined([ring.state_dict() for ring in rings]))
    mine, theirs = (ring.sample(64, np.random.default_rng(0), **OPTIONS) for ring in (again, one))
    np.testing.assert_array_equal(mine.observation, theirs.observation)


def test_an_empty_ring_joins():
    assert_same(joined([ring.state_dict() for ring in parts(2)]), whole().state_dict())


def test_parts_that_load_the_whole_go_on_as_if_nothing_had_happened():
    rings, again = played(parts(2)), parts(2)
    state = joined([ring.state_dict() for ring in rings])
    for ring in again:
        ring.load_state_dict(state)
    for pair in (rings, again):
        play(pair, 50, 9)
        play(pair, 51, 14)
    for ring, other in zip(again, rings, strict=True):
        assert_same(ring.state_dict(), other.state_dict())
        mine, theirs = (one.sample(64, np.random.default_rng(0), **OPTIONS) for one in (ring, other))
        np.testing.assert_array_equal(mine.reward, theirs.reward)


@pytest.mark.parametrize("before", [1, 3])
def test_a_whole_ring_of_any_number_of_learners_is_dealt_anew(before):
    rings = played([whole()] if before == 1 else parts(before))
    state = rings[0].state_dict() if before == 1 else joined([ring.state_dict() for ring in rings])
    again = parts(2)
    for ring in again:
        ring.load_state_dict(state)
    assert_same(joined([ring.state_dict() for ring in again]), played([whole()])[0].state_dict())


def test_each_part_forgets_its_own_oldest_episodes():
    rings = played(parts(2, capacity=120), lengths=(20,) * 12)
    assert [len(ring) for ring in rings] == [40, 40]  # 60 rows each: two episodes of 21 rows
    assert sorted(names(rings[0]) + names(rings[1])) == ["episode-10", "episode-11", "episode-8", "episode-9"]


def test_a_late_label_reaches_the_part_that_has_the_episode():
    one, *rings = played([whole(), *parts(2)], end="truncated", undecided=True)
    assert sum(len(ring) for ring in rings) < len(one) + LENGTHS[0]
    for ring in (one, *rings):
        ring.decide("episode-4", 1.0, True)
    assert sum(ring.relabel("episode-5", np.zeros(19, np.float32)) for ring in rings) == 1
    one.relabel("episode-5", np.zeros(19, np.float32))
    assert_same(joined([ring.state_dict() for ring in rings]), one.state_dict())


def test_all_parts_have_the_moments_of_all_rows():
    moments = [RowMoments(PACKER.size) for _ in range(3)]
    one, other = (partial(DealtRing, 1000, PACKER.size, ACTION_SIZE, rank=rank, size=2) for rank in (0, 1))
    played([whole(moments=moments[0]), one(moments=moments[1]), other(moments=moments[2])])
    for mine in moments[1:]:
        np.testing.assert_array_equal(mine.mean, moments[0].mean)
        np.testing.assert_array_equal(mine.deviation, moments[0].deviation)


def test_columns_of_another_length_are_refused():
    state = played([whole()])[0].state_dict()
    with pytest.raises(DataError, match=r"replay state reward: expected 133 rows"):
        parts(2)[0].load_state_dict({**state, "reward": state["reward"][:-1]})


def test_rings_of_a_fleet_become_one():
    first, second, one = played([whole()], (5, 9))[0], parts(1)[0], whole()
    for number, steps in ((7, 4), (8, 12)):
        play([second], number, steps)
    one.load_state_dict(side_by_side([first.state_dict(), second.state_dict()]))
    both = played([whole()], (5, 9))
    for number, steps in ((7, 4), (8, 12)):
        play(both, number, steps)
    assert_same(one.state_dict(), both[0].state_dict())
