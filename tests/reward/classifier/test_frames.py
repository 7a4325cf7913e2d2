"""Which frames show success, which are unclear, and which are learned from."""

import numpy as np
import pytest
from pushing import pushed_episode

from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ConfigError
from robot_rl.reward.classifier.classifier import debounced, first_at_least
from robot_rl.reward.classifier.frames import LabelledStore, choose_frames, labels_of
from robot_rl.reward.classifier.physical_gate import all_open, parse_gate
from robot_rl.reward.validation.ground_truth import read_truth


def test_a_frame_shows_success_if_the_step_that_led_to_it_was_rewarded():
    labels = labels_of(pushed_episode(1, arrives=True), margin=2)
    assert np.flatnonzero(labels.shows).tolist() == [7, 8, 9, 10, 11]
    assert np.flatnonzero(labels.unclear).tolist() == [5, 6]
    assert np.flatnonzero(labels.negative).tolist() == [0, 1, 2, 3, 4]


def test_frames_are_spread_over_the_episodes_and_no_unclear_one_is_among_them():
    labels = [labels_of(pushed_episode(n, arrives=n % 2 == 0, steps=30), margin=2) for n in range(10)]
    chosen = choose_frames(labels, 15, 40, np.random.default_rng(0))
    assert len(chosen) == len(set(chosen)) == 55
    showing = [episode for episode, row in chosen if labels[episode].shows[row]]
    assert sorted(showing) == sorted([0, 2, 4, 6, 8] * 3)
    assert not any(labels[episode].unclear[row] for episode, row in chosen)
    everything = choose_frames(labels, 10**6, 10**6, np.random.default_rng(0))
    assert len(everything) == sum(int((~one.unclear).sum()) for one in labels)


def test_of_a_run_that_a_classifier_rewarded_only_what_a_person_judged_counts(tmp_path):
    with EpisodeStore.create(tmp_path / "s") as store:
        judged = pushed_episode(1, arrives=True, reward_source="classifier")
        judged.metadata["judge"] = "classifier"
        store.append(judged)
        assert read_truth(store)["episode-1"].success is None
        store.append(pushed_episode(2, arrives=True, reward_source="operator"))
        wrong = pushed_episode(3, arrives=False, reward_source="operator")
        wrong.metadata["overruled"] = "classifier"
        store.append(wrong)
    assert LabelledStore(tmp_path / "s").count() == 2
    found = list(LabelledStore(tmp_path / "s").episodes(2))
    assert [one.episode.episode_id for one in found] == ["episode-2", "episode-3"]
    assert np.flatnonzero(found[1].deceptive).tolist() == [9, 10, 11]
    chosen = choose_frames([one.labels for one in found], 2, 3, np.random.default_rng(0))
    assert {(1, 9), (1, 10), (1, 11)} <= set(chosen)  # what has deceived before comes first


def test_labels_may_come_from_an_overlay(tmp_path):
    episode = pushed_episode(1, arrives=True)
    with EpisodeStore.create(tmp_path / "s") as store:
        store.append(episode)
        store.append(pushed_episode(2, arrives=True))
        with OverlayWriter(store.path, "operator-1", {}) as writer:
            writer.write(episode, store.fingerprint(episode.episode_id), np.zeros(len(episode)))
    (one,) = LabelledStore(tmp_path / "s", "operator-1").episodes(2)
    assert one.episode.episode_id == "episode-1"
    assert not one.shows.any()


def test_a_success_is_k_frames_in_a_row():
    score = np.array([0.9, 0.2, 0.8, 0.7, 0.9, 0.1])
    assert debounced(score, 1).tolist() == score.tolist()
    assert debounced(score, 3).tolist() == [0.0, 0.0, 0.2, 0.2, 0.7, 0.1]
    assert first_at_least(debounced(score, 2), 0.7) == 3
    assert first_at_least(debounced(score, 4), 0.7) is None
    assert debounced(score, 9).tolist() == [0.0] * 6


def test_a_gate_is_stated_on_the_observation():
    gate = parse_gate("state/tcp_pose[2] <= -0.058")
    assert parse_gate(str(gate)) == gate
    rows = {"state/tcp_pose": np.array([[0, 0, -0.06], [0, 0, -0.05]]), "state/wrench": np.array([[1.0], [3.0]])}
    assert all_open((gate,), rows, 2).tolist() == [True, False]
    assert all_open((gate, parse_gate("state/wrench[0] >= 2")), rows, 2).tolist() == [False, False]
    assert all_open((), rows, 2).tolist() == [True, True]


@pytest.mark.parametrize("text", ["state/tcp_pose[2] < 1", "tcp_pose[2] <= 1", "state/x[0] <= .", ""])
def test_what_is_no_gate_is_refused(text):
    with pytest.raises(ConfigError, match="expected state/<name>"):
        parse_gate(text)


def test_a_gate_on_what_is_not_observed_says_what_is():
    with pytest.raises(ConfigError, match=r"there are state/wrench\[0-5\]"):
        all_open((parse_gate("state/tcp_pose[2] <= 1"),), {"state/wrench": np.zeros((3, 6))}, 3)
