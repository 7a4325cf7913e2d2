from dataclasses import replace

import numpy as np
import pytest
import torch
from scenes import stamped_episode
from scipy.stats import spearmanr

from robot_rl.data.store.reward_overlays import read_overlay
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label
from robot_rl.reward.preference.pairs import Preference, Preferences
from robot_rl.reward.preference.rewards import apply_preferences, features, learn_reward, rewards_of_ends

STEPS = 5


@pytest.fixture
def store(tmp_path):
    """Ten episodes in which a number grows or falls by one a step."""
    with EpisodeStore.create(tmp_path / "s", {"task": "push"}) as made:
        for number in range(10):
            episode = stamped_episode(number, STEPS)
            rising = np.arange(STEPS + 1, dtype=np.float32)
            value = (number + rising if number % 2 else number - rising)[:, None]
            made.append(replace(episode, observations={**episode.observations, "state/value": value}))
        yield made


def values(episode):
    return episode.observations["state/value"][:, 0]


def labels(store, wrong=0.0):
    """Pairs of moments, asked in both orders; the greater number is preferred."""
    rng, episodes, made = np.random.default_rng(0), list(store.episodes()), []
    for _ in range(400):  # enough that a tenth of wrong answers moves no rank by chance
        moments = [
            (episodes[i], int(row)) for i, row in zip(rng.integers(10, size=2), rng.integers(6, size=2), strict=True)
        ]
        numbers = [values(episode)[row] for episode, row in moments]
        if numbers[0] == numbers[1]:
            continue
        first = float((numbers[0] > numbers[1]) != (rng.uniform() < wrong))
        clips = [{"episode_id": e.episode_id, "rows": [row], "camera": "front"} for e, row in moments]
        made.append(Label("k", tuple(clips), Answer(Status.OK, (first,)), ""))
        made.append(Label("k", tuple(clips[::-1]), Answer(Status.OK, (1.0 - first,)), ""))
    return made


@pytest.mark.slow
def test_rewards_follow_what_was_preferred(store):
    info = apply_preferences(store, "liked", labels(store, 0.1), {"by": "test"}, of="state")
    assert info.accuracy > 0.75
    told, real = [], []
    for episode in store.episodes(rewards="liked"):
        assert episode.reward.shape == (STEPS,)
        assert episode.terminated.tolist() == [False] * (STEPS - 1) + [True]
        assert not episode.reward[:-1].any(), "on the way, closeness is worth nothing"
        told.append(episode.reward[-1])
        real.append(values(episode)[-1])
    assert spearmanr(told, real).statistic > 0.9
    assert min(told) >= 0.0
    assert 0.5 < max(told) <= 1.0
    one = store.ids()[0]
    provenance = read_overlay(store.path, "liked", store.fingerprint(one)).provenance
    assert provenance == {"by": "test", "features": "state", "held_out_accuracy": info.accuracy}


def test_frames_tell_what_no_number_says(store):
    look = features("frames", "front")
    seen = look(store.read(store.ids()[0]))
    assert seen.shape[0] == STEPS + 1
    assert seen.isfinite().all()
    with pytest.raises(DataError, match="has no images/side; take --features state"):
        features("frames", "side")(store.read(store.ids()[0]))


def test_preferences_about_what_is_not_there_and_too_few_of_them(store):
    moments = {name: features("state")(store.read(name)) for name in store.ids()}
    with pytest.raises(DataError, match="about elsewhere, which the store does not have"):
        learn_reward(moments, Preferences((Preference(("elsewhere", 0), (store.ids()[0], 0), 1.0, False),), 0, 0))
    with pytest.raises(DataError, match="0 readable pairs are too few"):
        learn_reward(moments, Preferences((), 0, 0))


class Known:
    """An ensemble whose reward of a moment is its first feature."""

    def __call__(self, rows):
        return rows[:, 0]


def test_who_came_half_as_close_is_not_paid_half_as_much():
    """Closeness is told from the worst of all moments, which is nothing, to the best, which is 1."""
    on_the_way = torch.linspace(2.0, 6.0, 1001)[:, None]
    ends = {"worst": 2.0, "half": 4.0, "nearly": 5.6, "best": 6.0}
    rewards = rewards_of_ends(Known(), {n: torch.cat([on_the_way, torch.tensor([[end]])]) for n, end in ends.items()})
    told = [rewards[name][-1] for name in ends]
    assert told == pytest.approx([0.0, 0.5**4, 0.9**4, 1.0], abs=0.01)
    assert not any(rewards[name][:-1].any() for name in ends)


def test_rewards_that_are_all_the_same_are_none():
    rewards = rewards_of_ends(Known(), {"a": torch.zeros(4, 2)})
    assert rewards["a"].tolist() == [0.0, 0.0, 0.0]
