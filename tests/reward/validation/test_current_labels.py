"""Labels of recordings that were made anew under the same ids."""

import json
import shutil

import pytest
from running import robot_rl
from scenes import stamped_store

from robot_rl.data.store.store import EpisodeStore
from robot_rl.reward.answer import Answer, Status
from robot_rl.reward.label_store import Label, LabelStore
from robot_rl.reward.query import QueryKind
from robot_rl.reward.validation.current_labels import current_labels, served_by_several

WHO = {"backend": "mine", "model": "m"}


def label_all(path, probability, name="success"):
    with EpisodeStore.open(path) as store, LabelStore(path, create=True) as labels:
        labels.begin(name, QueryKind.SUCCESS, WHO, {})
        for number, episode in enumerate(store.ids()):
            mark = store.fingerprint(episode)
            subject = json.dumps([{"camera": "front", "episode_id": episode, "fingerprint": mark, "rows": [0]}])
            labels.add(name, subject, mark, Answer(Status.OK, (probability(number),)), WHO)


def recorded_twice(tmp_path):
    """Return a store whose six episodes were labelled, recorded anew under the same ids, and labelled again."""
    first, second = stamped_store(tmp_path / "first"), stamped_store(tmp_path / "second", steps=8)
    label_all(first, lambda number: 0.9 if number % 2 else 0.1)
    shutil.move(first / "labels", second / "labels")
    label_all(second, lambda number: 0.1 if number % 2 else 0.9)
    return second


def test_labels_of_a_recording_that_is_gone_do_not_count(tmp_path):
    path = recorded_twice(tmp_path)
    with EpisodeStore.open(path) as store, LabelStore(path) as labels:
        every = list(labels.labels("success"))
        found = current_labels(store, every)
    assert (len(every), len(found.labels), found.outdated) == (12, 6, 6)
    assert [label.answer.values[0] for label in found.labels] == [0.9, 0.1] * 3
    assert "6 labels are of recordings that the store no longer holds" in found.notes[0]


@pytest.mark.slow
def test_report_calibrate_and_compare_count_each_episode_once(tmp_path):
    path = recorded_twice(tmp_path)
    report = robot_rl("label", "report", path, "--json")
    assert report.returncode == 0, report.stderr
    answer = json.loads(report.stdout)
    assert (answer["labels"], answer["compared"]) == (6, 6)
    assert any("no longer holds" in note for note in answer["notes"])
    fitted = robot_rl("label", "calibrate", path, "--share", "0.99")
    assert "3 successes and 3 failures are too few" in fitted.stderr  # 6 and 6 with those of the first recordings
    label_all(path, lambda number: 0.5, "other")
    compared = robot_rl("label", "compare", path, "--name", "success", "--name", "other", "--json")
    assert compared.returncode == 0, compared.stderr
    assert json.loads(compared.stdout)["episodes"] == 6


def test_a_server_that_changed_its_model_under_the_same_name_is_named():
    def label(print_):
        served = {"model": "m", "system_fingerprint": print_}
        return Label("k", (), Answer(Status.OK, (0.5,), details={"served_by": served}), "")

    assert not served_by_several([label("fp_1"), label("fp_1")])
    (note,) = served_by_several([label("fp_1"), label("fp_2"), Label("k", (), Answer(Status.UNSURE), "")])
    assert "2 models" in note
    assert "m, fp_1; m, fp_2" in note
