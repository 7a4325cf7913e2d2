"""Rewards that are replaced after an episode has ended."""

import numpy as np
import pytest
import tagged

from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.percept import Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.errors import DataError

STEPS = 6


def played(buffer, number, *, undecided=False, success=False):
    """An episode whose rewards are 0 but for a success at its end."""
    buffer.begin(tagged.percept(number, 0), f"episode-{number}")
    for t in range(STEPS):
        last = t == STEPS - 1
        ends, cut = last and success, last and not success
        reward = float(ends)
        step = Transition(tagged.action(number, t), reward, ends, cut, 0, undecided and last)
        buffer.append(step, Percept(tagged.state(number, t + 1)))
    return buffer


def rewards_of(buffer):
    """Each sampled step's tag and reward, each for itself."""
    ranks = np.arange(len(buffer))
    sample = buffer.gather(ranks, np.random.default_rng(0), n_step=1, discount=0.9, history=(0,))
    rows = zip(sample.action[:, 0], sample.reward, sample.discount, strict=True)
    return {float(tag): (float(r), float(d)) for tag, r, d in rows}


def new():
    return ReplayBuffer(100, tagged.PACKER.size, tagged.ACTION_SIZE, rewards=(0.0, 1.0))


def test_every_step_gets_its_own_reward_and_no_other_episode_changes():
    buffer = new()
    for number in range(3):
        played(buffer, number)
    rewards = np.linspace(0.1, 0.6, STEPS).astype(np.float32)
    assert buffer.relabel("episode-1", rewards)
    found = rewards_of(buffer)
    for number in range(3):
        for t in range(STEPS):
            reward, discount = found[tagged.tag(number, t) + 0.5]
            assert reward == pytest.approx(rewards[t] if number == 1 else 0.0)
            assert discount == pytest.approx(0.9), "no end is changed"
    assert buffer.relabel("episode-1", 2 * rewards[::-1] / 3), "as often as the reward is learned anew"
    assert rewards_of(buffer)[tagged.tag(1, 0) + 0.5][0] == pytest.approx(0.4)


def test_an_undecided_end_is_sampled_once_it_has_a_reward():
    buffer = played(new(), 0, undecided=True)
    assert len(buffer) == STEPS - 1
    buffer.relabel("episode-0", np.full(STEPS, 0.5, np.float32))
    assert len(buffer) == STEPS
    assert {reward for reward, _ in rewards_of(buffer).values()} == {0.5}
    sample = buffer.gather(np.array([0]), np.random.default_rng(0), n_step=9, discount=1.0, history=(0,))
    assert sample.reward == pytest.approx(0.5 * STEPS), "windows reach to the end now"


def test_a_success_that_was_judged_keeps_its_reward():
    ended = played(new(), 0, success=True)
    ended.relabel("episode-0", np.full(STEPS, 0.25, np.float32))
    late = played(new(), 0, undecided=True)
    late.decide("episode-0", 1.0, True, since=4)
    late.relabel("episode-0", np.full(STEPS, 0.25, np.float32))
    assert [reward for reward, _ in rewards_of(ended).values()] == [0.25] * 5 + [1.0]
    assert list(rewards_of(late).values()) == [(0.25, pytest.approx(0.9))] * 3 + [(1.0, 0.0)] * 3


def test_what_cannot_be_is_refused_and_what_was_forgotten_is_ignored():
    buffer = played(new(), 0)
    assert not buffer.relabel("episode-7", np.zeros(3, np.float32))
    with pytest.raises(DataError, match=r"rewards of shape \(5,\) for 6 steps"):
        buffer.relabel("episode-0", np.zeros(5, np.float32))
    with pytest.raises(DataError, match="range of returns"):
        buffer.relabel("episode-0", np.full(STEPS, 7.0, np.float32))
    with pytest.raises(DataError, match="reward is nan"):
        buffer.relabel("episode-0", np.full(STEPS, np.nan, np.float32))
