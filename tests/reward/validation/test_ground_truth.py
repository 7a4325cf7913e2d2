"""Ground truth of stores: recorded outcomes, a person's file, an overlay with progress; a classifier is no witness."""

import dataclasses

import numpy as np
import pytest
import tagged

from robot_rl.data.store.operator_labels import label_episode
from robot_rl.data.store.reward_overlays import OverlayWriter
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import DataError
from robot_rl.reward.validation.ground_truth import CLASSIFIER_SOURCE, read_truth


def episode(number, **metadata):
    return dataclasses.replace(tagged.valid(number, 3), metadata={"task": "push", **metadata})


@pytest.fixture
def store(tmp_path):
    with EpisodeStore.create(tmp_path / "s", {"task": "push"}) as made:
        made.append(episode(0, success=True, outcome="inserted"))
        made.append(episode(1, success=False, outcome="near_miss"))
        made.append(episode(2))
        made.append(episode(3, success=True, judge=CLASSIFIER_SOURCE))
        made.append(episode(4, task_success=1.0))
        made.append(episode(5, success=True, judge="operator"))
        yield made


def test_recorded_outcomes_are_the_truth_unless_a_classifier_gave_them(store):
    truth = read_truth(store)
    assert [truth[f"episode-{n}"].success for n in range(6)] == [True, False, None, None, True, True]
    assert [truth[f"episode-{n}"].outcome for n in range(3)] == ["inserted", "near_miss", ""]
    assert all(one.progress is None for one in truth.values())


@pytest.mark.parametrize(
    ("answer", "success"),
    [("1", True), ("true", True), (" Yes ", True), ("SUCCESS", True), ("0", False), ("no", False), ("failure", False)],
)
def test_a_file_replaces_what_was_recorded(store, tmp_path, answer, success):
    file = tmp_path / "outcomes.csv"
    file.write_text(f"episode_id,success,outcome\nepisode-0,{answer},by hand\n", encoding="utf-8")
    truth = read_truth(store, outcomes=file)
    assert (truth["episode-0"].success, truth["episode-0"].outcome) == (success, "by hand")
    assert truth["episode-1"].success is False, "the others stay"


def test_a_later_label_of_a_person_replaces_what_was_recorded(store, tmp_path):
    label_episode(store.path, "episode-0", False, "somebody")
    label_episode(store.path, "episode-3", False, "somebody")
    label_episode(store.path, "episode-3", True, "somebody, who corrects it")
    truth = read_truth(store)
    assert [truth[f"episode-{n}"].success for n in range(4)] == [False, False, None, True]
    assert truth["episode-0"].outcome == "inserted"
    (tmp_path / "outcomes.csv").write_text("episode_id,success\nepisode-0,yes\n", encoding="utf-8")
    assert read_truth(store, outcomes=tmp_path / "outcomes.csv")["episode-0"].success is True


def test_rewards_of_a_model_under_the_name_of_an_operator_are_no_word_of_a_person(store):
    """As `label apply --rewards operator-1` made them once."""
    with OverlayWriter(store.path, "operator-1", {"labels": "vlm"}) as writer:
        writer.write(store.read("episode-0"), store.fingerprint("episode-0"), np.zeros(3))
    assert read_truth(store)["episode-0"].success is True


def test_a_file_needs_no_outcomes(store, tmp_path):
    file = tmp_path / "outcomes.csv"
    file.write_text("success,episode_id\nno,episode-0\nyes,episode-3\n", encoding="utf-8")
    truth = read_truth(store, outcomes=file)
    assert [truth[f"episode-{n}"].success for n in (0, 3)] == [False, True]
    assert truth["episode-0"].outcome == ""


def test_a_file_without_outcomes_leaves_those_that_it_does_not_contradict(store, tmp_path):
    """Else nobody who confirms failures by a file could show the rate of near misses."""
    file = tmp_path / "outcomes.csv"
    file.write_text("episode_id,success\nepisode-0,no\nepisode-1,no\n", encoding="utf-8")
    truth = read_truth(store, outcomes=file)
    assert [truth[f"episode-{n}"].outcome for n in (0, 1)] == ["", "near_miss"]
    file.write_text("episode_id,success,outcome\nepisode-1,no,\n", encoding="utf-8")
    assert read_truth(store, outcomes=file)["episode-1"].outcome == ""


def test_a_file_of_a_spreadsheet_may_begin_with_a_byte_order_mark(store, tmp_path):
    file = tmp_path / "outcomes.csv"
    file.write_text("episode_id,success\nepisode-2,TRUE\n", encoding="utf-8-sig")
    assert read_truth(store, outcomes=file)["episode-2"].success is True


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("episode_id,success\nepisode-9,1\n", r"csv:2: the store has no episode 'episode-9'"),
        ("episode_id,success\nepisode-0,1\nepisode-0,0\n", r"csv:3: episode-0 is there a second time"),
        ("episode_id,success\nepisode-0,1\nepisode-1,perhaps\n", r"csv:3: success is 'perhaps'; valid: 1, true"),
        ("name,success\nepisode-0,1\n", "expected episode_id,success"),
        ("episode_id,success\n", "holds no rows"),
        ("", "holds no rows"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_its_line(store, tmp_path, content, problem):
    file = tmp_path / "outcomes.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        read_truth(store, outcomes=file)


def test_a_file_that_cannot_be_read_is_named(store, tmp_path):
    (tmp_path / "outcomes.csv").write_bytes(b"\xff\xfe\x00")
    for file in (tmp_path / "none.csv", tmp_path / "outcomes.csv"):
        with pytest.raises(DataError, match="cannot be read"):
            read_truth(store, outcomes=file)


def test_an_overlay_holds_the_progress_after_each_step(store):
    with OverlayWriter(store.path, "real-progress", {}) as writer:
        one = store.read("episode-1")
        writer.write(one, store.fingerprint("episode-1"), np.array([0.2, 0.7, 0.4], np.float32))
    truth = read_truth(store, progress="real-progress")
    np.testing.assert_allclose(truth["episode-1"].progress, [0.0, 0.2, 0.7, 0.4])
    assert truth["episode-1"].success is False
    assert truth["episode-0"].progress is None


def test_an_overlay_that_is_not_there_is_an_error(store):
    with pytest.raises(DataError, match="no overlay 'nothing' with the true progress"):
        read_truth(store, progress="nothing")
