"""`robot-rl reward` as a user types it, on the smallest task: record, train, judge, and let it judge a training."""

import json

import numpy as np
import pytest
from running import SMALL, robot_rl

from robot_rl.data.store import EpisodeStore
from robot_rl.reward.labelled_frames import LabelledStore

FEW = ("--positives", "30", "--negatives", "45", "--size", "64")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("reward")
    for name, seed in (("frames", 0), ("others", 1)):
        done = robot_rl("reward", "record", "reach", "--out", path / name, *FEW, "--seed", seed, "--json")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["positives"] >= 30
        assert answer["negatives"] >= 45
    done = robot_rl("reward", "train", path / "frames", "--out", path / "c.pt", *FEW)
    assert done.returncode == 0, done.stderr
    assert "robot-rl reward report" in done.stdout
    return path


def judged(folder, *flags):
    settings = {"reward.kind": "classifier", "reward.path": folder / "c.pt"}
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    return robot_rl("train", "reach", *SMALL, *words, *flags)


def test_what_the_script_records_shows_success_and_near_misses(folder):
    labelled = list(LabelledStore(folder / "frames").episodes(2))
    assert all(set(one.episode.observations) >= {"images/front", "images/wrist"} for one in labelled)
    undone = [one for one in labelled if (np.diff(one.shows.astype(int)) < 0).any()]
    assert undone  # done, and then no longer
    assert not any(one.episode.terminated.any() and one.shows.any() for one in labelled)
    with EpisodeStore.open(folder / "frames") as store:
        assert [bool(row.success) for row in store.summaries()] == [bool(one.shows.any()) for one in labelled]


def test_a_training_is_judged_by_a_classifier_only_if_it_may(folder, tmp_path):
    refused = judged(folder, "--out", tmp_path / "run")
    assert refused.returncode == 1
    assert "was never judged" in refused.stderr
    assert not (tmp_path / "run").exists()

    report = robot_rl("reward", "report", folder / "c.pt", folder / "others", "--out", tmp_path / "page.png")
    assert (tmp_path / "page.png").exists(), report.stderr
    assert "end episodes" in report.stdout.splitlines()[0]

    done = judged(folder, "--set", "reward.allow_unfit=true", "--out", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    assert "task_success" in json.dumps(json.loads(done.stdout)) or json.loads(done.stdout)["success_rate"] == 0
    with EpisodeStore.open(tmp_path / "run" / "episodes") as store:
        episodes = list(store.episodes())
    assert {episode.reward_source for episode in episodes} == {"classifier"}
    assert "images/front" in episodes[0].observations
    nobody = robot_rl("reward", "train", tmp_path / "run", "--out", tmp_path / "again.pt")
    assert "0 episodes" in nobody.stderr  # it does not learn from itself
    again = robot_rl("eval", tmp_path / "run", "--episodes", "2", "--json")
    assert again.returncode == 0, again.stderr
    assert {"task_success", "classifier_probability"} <= json.loads(again.stdout)["results"][0]["metrics"].keys()


def test_what_cannot_be_is_said_at_once(folder, tmp_path):
    other = robot_rl("train", *SMALL, "--set", "reward.kind=classifier", "--out", tmp_path / "run", "cube_lift")
    assert "needs reward.path" in other.stderr
    path = f"reward.path={folder / 'c.pt'}"
    flags = ("--set", "reward.kind=classifier", "--set", "reward.allow_unfit=true", "--set", path)
    other = robot_rl("train", "cube_lift", *SMALL, *flags, "--out", tmp_path / "run")
    assert "trained for 'reach', not for 'cube_lift'" in other.stderr
    gate = robot_rl("reward", "train", folder / "frames", "--out", tmp_path / "g.pt", "--gate", "height < 3")
    assert "expected state/<name>" in gate.stderr
    known = robot_rl("reward", "report", folder / "c.pt", folder / "frames")
    assert "was trained on all" in known.stderr
