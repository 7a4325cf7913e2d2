"""Preferences: known strengths are recovered, and nothing depends on which of two is shown first."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.preference.bradley_terry import LAPSES, RewardEnsemble, preference_loss
from robot_rl.reward.preference.pairs import combine_orders
from robot_rl.reward.preference.rewards import CONTRAST, rewards_of_ends

VALUES = st.sampled_from([0.0, 0.5, 1.0])


def answer(value):
    return Answer(Status.UNSURE) if value is None else Answer(Status.OK, (value,))


def label(first, second, value):
    clips = tuple({"episode_id": name, "rows": [row]} for name, row in (first, second))
    return Label("k", clips, answer(value), "")


def test_the_order_of_strengths_is_recovered_from_their_probabilities():
    """Eight items of known strength; each pair is preferred as often as Bradley and Terry have it."""
    strength = torch.linspace(-2, 2, 8)
    items = torch.eye(8)
    first, second = (torch.tensor(side) for side in zip(*itertools.permutations(range(8), 2), strict=True))
    chance = LAPSES / 2 + (1 - LAPSES) * torch.sigmoid(strength[first] - strength[second])
    ensemble = RewardEnsemble(8, torch.Generator().manual_seed(0), members=3, hidden_sizes=(16,))
    repeats = 4  # so that the pairs that are held out are also learned from
    ensemble.fit(
        items[first].repeat(repeats, 1), items[second].repeat(repeats, 1), chance.repeat(repeats), steps=600,
        learning_rate=3e-3,
    )  # fmt: skip
    found = ensemble(items)
    torch.testing.assert_close(found - found.mean(), strength, atol=0.3, rtol=0.1)
    assert (found[1:] > found[:-1]).all()


@given(st.floats(-30, 30), VALUES)
def test_the_loss_does_not_depend_on_which_of_the_two_is_first(logit, value):
    there = preference_loss(torch.tensor(logit, dtype=torch.float64), torch.tensor(value, dtype=torch.float64))
    back = preference_loss(torch.tensor(-logit, dtype=torch.float64), torch.tensor(1 - value, dtype=torch.float64))
    assert float(there) == pytest.approx(float(back))


@given(st.floats(-30, 30), st.floats(0, 5))
def test_the_loss_falls_as_the_preferred_one_gains_and_stays_bounded(logit, more):
    low, high = (
        float(preference_loss(torch.tensor(x, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)))
        for x in (logit, logit + more)
    )
    assert high <= low + 1e-12
    assert -np.log(1 - LAPSES / 2) - 1e-9 <= high <= low <= -np.log(LAPSES / 2) + 1e-9


def test_a_constant_added_to_the_features_of_all_moments_changes_no_reward():
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 80, 3, generator=generator)
    value = (first[:, 0] > second[:, 0]).float()
    found = []
    for offset in (0.0, 7.0):
        ensemble = RewardEnsemble(3, torch.Generator().manual_seed(1), members=2, hidden_sizes=(16,))
        ensemble.fit(first + offset, second + offset, value, steps=50)
        found.append(ensemble(first + offset))
    torch.testing.assert_close(found[0], found[1], atol=1e-3, rtol=1e-3)


MOMENTS = st.tuples(st.sampled_from("abc"), st.integers(0, 3))


@st.composite
def pairs(draw):
    """Different pairs of moments, each with an answer in either order; None could not be parsed."""
    moments = st.tuples(MOMENTS, MOMENTS).filter(lambda pair: pair[0] < pair[1])
    rows = draw(st.lists(moments, max_size=8, unique=True))
    return [(first, second, draw(VALUES | st.none()), draw(VALUES | st.none())) for first, second in rows]


@given(pairs(), st.integers(0, 2**31))
def test_the_preferences_do_not_depend_on_the_order_of_the_labels(rows, seed):
    labels = [label(a, b, there) for a, b, there, _ in rows] + [label(b, a, back) for a, b, _, back in rows]
    shuffled = [labels[n] for n in np.random.default_rng(seed).permutation(len(labels))]

    def content(found):
        """As seen from the moment that comes first by name."""
        return sorted(
            (p.first, p.second, p.value, p.flipped)
            if p.first < p.second
            else (p.second, p.first, 1 - p.value, p.flipped)
            for p in found.pairs
        )

    one, other = combine_orders(labels), combine_orders(shuffled)
    assert content(one) == content(other)
    assert (one.skipped, one.incomplete) == (other.skipped, other.incomplete)
    assert len(one.pairs) + one.skipped == len(rows)


@given(pairs())
def test_a_preference_needs_both_orders_to_agree(rows):
    labels = [entry for a, b, there, back in rows for entry in (label(a, b, there), label(b, a, back))]
    readable = [(there, back) for _, _, there, back in rows if there is not None and back is not None]
    for pair, (there, back) in zip(combine_orders(labels).pairs, readable, strict=True):
        assert pair.value == (there if there == 1 - back else 0.5)
        assert pair.flipped == ({there, back} in ({0.0}, {1.0}))


@settings(max_examples=20)
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_the_rewards_of_a_store_lie_between_0_and_1_and_only_ends_have_some(seed, episodes):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 8, episodes)
    moments = {
        f"e{n}": torch.from_numpy(rng.normal(size=(length + 1, 2)).astype(np.float32))
        for n, length in enumerate(lengths)
    }

    def closeness(rows):
        return rows[:, 0]

    rewards = rewards_of_ends(closeness, moments)
    assert {name: len(values) for name, values in rewards.items()} == {
        name: len(rows) - 1 for name, rows in moments.items()
    }
    for values in rewards.values():
        assert (values[:-1] == 0).all()
        assert 0 <= values[-1] <= 1
    ends = {name: float(rows[-1, 0]) for name, rows in moments.items()}
    order = sorted(ends, key=ends.__getitem__)
    assert all(rewards[low][-1] <= rewards[high][-1] for low, high in itertools.pairwise(order))
    assert CONTRAST > 1
