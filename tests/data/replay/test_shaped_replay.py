"""Rewards shaped by a potential when they are sampled: what is best stays best, whatever the potential."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tagged import ACTION_SIZE, PACKER, action, percept

from robot_rl.data.replay.buffer import ReplayBuffer
from robot_rl.data.replay.percept import Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.data.schema import Source
from robot_rl.errors import DataError

DISCOUNT = 0.9
ENDS = ("terminated", "truncated", "running")
SOURCES = st.lists(st.sampled_from([Source.POLICY, Source.HUMAN]), min_size=1, max_size=12)
POTENTIALS = st.lists(st.floats(0, 1, width=32), min_size=13, max_size=13)


def ring(capacity=40, *, shaped=True):
    return ReplayBuffer(capacity, PACKER.size, ACTION_SIZE, shaped=shaped)


def play(buffer, number, sources, potentials, end, *, undecided=False):
    """A tagged episode with rewards of its own; a buffer that does not shape is told no potentials."""

    def seen(t):
        return percept(number, t)._replace(potential=potentials[t] if buffer.shaped else 0.0)

    buffer.begin(seen(0), f"episode-{number}")
    for t, source in enumerate(sources):
        last = t == len(sources) - 1
        ends = (last and end == "terminated", last and end == "truncated")
        buffer.append(
            Transition(action(number, t), np.sin(t), *ends, source, undecided=last and undecided), seen(t + 1)
        )


def everything(buffer, n_step):
    ranks = np.arange(len(buffer))
    return buffer.gather(ranks, np.random.default_rng(0), n_step=n_step, discount=DISCOUNT, history=(0,))


def followed(sample):
    """Return along an episode from its first step on, window after window; and what is left of the discount."""
    total, left, t = 0.0, 1.0, 0
    starts = sample.observation[:, 0].tolist()
    while t is not None:
        total += left * sample.reward[t]
        left *= sample.discount[t]
        after = sample.next_observation[t, 0]
        t = starts.index(after) if left and after in starts else None
    return total, left


@given(SOURCES, POTENTIALS, st.sampled_from(ENDS), st.integers(1, 4))
def test_the_return_of_every_episode_changes_by_its_first_potential_alone(sources, potentials, end, n_step):
    plain, shaped = ring(shaped=False), ring()
    for buffer in (plain, shaped):
        play(buffer, 0, sources, potentials, end)
    (expected, left), (found, still_left) = followed(everything(plain, n_step)), followed(everything(shaped, n_step))
    assert still_left == left
    # Where something follows, its own value is bootstrapped, which is less by its potential, too: Q' = Q - Phi.
    assert found - left * potentials[len(sources)] == pytest.approx(expected - potentials[0], abs=1e-5)


@given(SOURCES, POTENTIALS, st.booleans())
def test_what_a_late_label_says_is_shaped_as_if_it_had_been_known(sources, potentials, success):
    late, known = ring(), ring()
    play(late, 3, sources, potentials, "truncated", undecided=True)
    play(known, 3, sources, potentials, "terminated" if success else "truncated")
    for buffer in (late, known):
        buffer.decide("episode-3", float(success), success)
    for one, other in zip(everything(late, 3), everything(known, 3), strict=True):
        np.testing.assert_array_equal(one, other)


def values_of(buffer, states, actions):
    """Fixed point of Q-learning on everything that is remembered, (states, actions)."""
    sample, q = everything(buffer, 1), np.zeros((states, actions))
    here, there = sample.observation[:, 0].astype(int), sample.next_observation[:, 0].astype(int)
    done = sample.action[:, 0].astype(int)
    for _ in range(300):
        target = sample.reward + sample.discount * q.max(1)[there]
        q[here, done] = target
    return q


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_every_value_is_less_by_its_potential_so_that_the_best_actions_stay(seed):
    rng, (states, actions) = np.random.default_rng(seed), (6, 3)
    potential, rewards = rng.uniform(0, 1, states), rng.normal(size=(states, actions))
    after, ends = rng.integers(states, size=(states, actions)), rng.uniform(size=(states, actions)) < 0.2
    found = []
    for shaped in (False, True):
        buffer = ring(2 * states * actions, shaped=shaped)

        def seen(s, buffer=buffer):
            return Percept(np.full(PACKER.size, s, np.float32), None, float(potential[s]) if buffer.shaped else 0.0)

        for s, a in np.ndindex(states, actions):
            buffer.begin(seen(s))
            end = bool(ends[s, a])
            taken = np.full(ACTION_SIZE, a, np.float32)
            buffer.append(Transition(taken, float(rewards[s, a]), end, not end, Source.POLICY), seen(int(after[s, a])))
        found.append(values_of(buffer, states, actions))
    plain, shaped = found
    np.testing.assert_allclose(shaped, plain - potential[:, None], atol=1e-4)


def test_a_saved_state_goes_on_with_its_potentials():
    buffer, restored = ring(), ring()
    play(buffer, 1, [Source.POLICY] * 5, np.linspace(0, 1, 6).tolist(), "truncated")
    restored.load_state_dict(buffer.state_dict())
    for one, other in zip(everything(buffer, 2), everything(restored, 2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_potentials_are_finite_and_only_where_rewards_are_shaped():
    with pytest.raises(DataError, match=r"potential is 0\.5, expected none"):
        ring(shaped=False).begin(percept(0, 0)._replace(potential=0.5))
    with pytest.raises(DataError, match="potential is nan, expected a finite one"):
        ring().begin(percept(0, 0)._replace(potential=float("nan")))
