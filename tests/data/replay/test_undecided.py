"""Replay of episodes whose success a label says later: until then nothing is learned from their last step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tagged import ACTION_SIZE, PACKER, action, percept, tag

from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.percept import ToolElements
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.errors import DataError

P, H = Source.POLICY, Source.HUMAN


def ring(capacity=100):
    return ReplayBuffer(capacity, PACKER.size, ACTION_SIZE, tools=ToolElements((0,)))


def play(buffer, number, sources, *, undecided=True, reward=0.0, terminated=False):
    """A tagged episode whose last step is worth that, or undecided; the steps before it are worth nothing."""
    buffer.begin(percept(number, 0), f"episode-{number}")
    for t, source in enumerate(sources):
        last = t == len(sources) - 1
        ends = (last and terminated, last and not terminated)
        step = Transition(action(number, t), last * reward, *ends, source, undecided=last and undecided)
        buffer.append(step, percept(number, t + 1))


def everything(buffer, operator_only=False):
    count = buffer.operator_count if operator_only else len(buffer)
    rng = np.random.default_rng(0)
    ranks = np.arange(count)
    return buffer.gather(ranks, rng, n_step=3, discount=0.5, history=(0,), operator_only=operator_only)


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True) if a is not None)


def test_an_undecided_step_is_as_if_it_had_not_been_taken():
    buffer = ring()
    play(buffer, 0, [P, P, P, P])
    sample = everything(buffer)
    assert sample.action[:, 0].tolist() == [0.5, 1.5, 2.5]
    assert sample.discount.tolist() == [0.125, 0.25, 0.5]
    assert sample.next_observation[:, 0].tolist() == [3, 3, 3]
    assert np.isnan(sample.to_goal).all()


@pytest.mark.parametrize(("reward", "terminated"), [(1.0, True), (0.0, False)])
def test_decided_late_it_is_as_if_it_had_been_known_at_once(reward, terminated):
    late, at_once = ring(), ring()
    for number, sources in enumerate([[P, P, P], [P, H, H], [H], [P, P]]):
        play(late, number, sources)
        play(at_once, number, sources, undecided=False, reward=reward, terminated=terminated)
    for number in (2, 0, 3, 1):
        assert late.decide(f"episode-{number}", reward, terminated)
    assert same(everything(late), everything(at_once))
    assert same(everything(late, operator_only=True), everything(at_once, operator_only=True))


@pytest.mark.parametrize("sources", [[P, P, P, P, P], [P, H, H, P, P]])
def test_up_to_where_it_was_done_it_is_as_if_the_episode_had_ended_there(sources):
    long, short = ring(), ring()
    play(long, 0, sources)
    play(short, 0, sources[:3], undecided=False, reward=1.0, terminated=True)
    assert long.decide("episode-0", 1.0, True, since=3)
    found, expected = everything(long), everything(short)
    assert same([column[:3] for column in found if column is not None], [c for c in expected if c is not None])
    assert found.reward[3:].tolist() == [1.0, 1.0], "what leads to where it is done is worth as much"
    assert found.discount[3:].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("since", [0, 1, 2])
def test_a_decision_can_be_taken_back(since):
    buffer, other = ring(), ring()
    for one in (buffer, other):
        play(one, 0, [P, P])
    buffer.decide("episode-0", 1.0, True, since)
    buffer.decide("episode-0", 0.0, False)
    other.decide("episode-0", 0.0, False)
    assert same(everything(buffer), everything(other))


@pytest.mark.parametrize("ended_by", ["failure", "success", "limit"])
def test_who_calls_an_episode_a_failure_does_not_undo_that_it_ended_by_one(ended_by):
    buffer, recorded = ring(), ring()
    for one in (buffer, recorded):
        play(one, 0, [P, H, P], undecided=False, reward=float(ended_by == "success"), terminated=ended_by != "limit")
    for _ in range(2):  # a resumed run hears it again
        buffer.decide("episode-0", 0.0, False)
        found = everything(buffer)
        assert found.reward.tolist() == [0.0, 0.0, 0.0]
        assert found.discount.tolist() == [0.5, 0.5, 0.0 if ended_by == "failure" else 0.5]
    assert same(found, everything(recorded)) == (ended_by != "success"), "who agrees changes nothing"


def test_what_was_forgotten_or_goes_on_needs_no_decision():
    buffer = ring(8)
    play(buffer, 0, [P, P, P])
    play(buffer, 1, [P, P, P])
    buffer.begin(percept(2, 0), "episode-2")  # drives out the first
    buffer.append(Transition(action(2, 0), 0.0, False, False, P), percept(2, 1))
    assert not buffer.decide("episode-0", 1.0, True)
    assert not buffer.decide("episode-2", 1.0, True)
    assert not buffer.decide("", 1.0, True)
    assert everything(buffer).action[:, 0].tolist() == [tag(1, 0) + 0.5, tag(1, 1) + 0.5, tag(2, 0) + 0.5]


def test_only_the_end_of_an_episode_with_a_name_can_be_undecided():
    buffer = ring()
    buffer.begin(percept(0, 0), "one")
    with pytest.raises(DataError, match="only a step that truncates"):
        buffer.append(Transition(action(0, 0), 0.0, False, False, P, undecided=True), percept(0, 1))
    buffer.begin(percept(0, 0))
    with pytest.raises(DataError, match="with a name"):
        buffer.append(Transition(action(0, 0), 0.0, False, True, P, undecided=True), percept(0, 1))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_decided_and_forgotten_the_rest_is_what_an_endless_memory_would_hold(data):
    """Against a buffer that never forgets, told each decision before the episode; also over a save."""
    buffer, played = ring(16), {}
    for number in range(data.draw(st.integers(1, 12))):
        sources = data.draw(st.lists(st.sampled_from([P, H]), min_size=1, max_size=5))
        play(buffer, number, sources)
        played[number] = (sources, None)
        for older in data.draw(st.lists(st.sampled_from(sorted(played)), max_size=3)):
            success = data.draw(st.booleans())
            if buffer.decide(f"episode-{older}", float(success), success):
                played[older] = (played[older][0], success)
        if data.draw(st.booleans()):
            saved = buffer.state_dict()
            buffer = ring(16)
            buffer.load_state_dict(saved)
    endless = ring(1000)
    for number, (sources, success) in played.items():
        known = {} if success is None else {"undecided": False, "reward": float(success), "terminated": success}
        play(endless, number, sources, **known)
    for operator_only in (False, True):
        ours, theirs = everything(buffer, operator_only), everything(endless, operator_only)
        count = len(ours.reward)
        assert same(ours, [None if a is None else a[len(a) - count :] for a in theirs])
