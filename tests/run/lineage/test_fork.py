"""A fork goes on from a checkpoint of another run with settings changed, and the other run stays as it is."""

import json
import shutil
from dataclasses import replace

import pytest
from running import learned, robot_rl, same, snapshot, start, timeless, wait_for

from robot_rl.config.components import SACConfig
from robot_rl.config.describe import list_keys
from robot_rl.config.load import load_config
from robot_rl.config.resuming import forkable_changes, resumable_changes
from robot_rl.config.reward import RewardConfig
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import CheckpointError, ConfigError
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run.directory.metrics import read_metrics
from robot_rl.run.directory.run_directory import RunDirectory
from robot_rl.run.lineage.fork import fork_run
from robot_rl.run.lineage.source_run import SourceRun
from robot_rl.run.train import train


@pytest.fixture
def earlier(old):
    """The run at the checkpoint before its last."""
    return SourceRun.read(old, load_checkpoint(old / "checkpoint.pt.previous")["env_steps"])


def go_on(source, config, path):
    fork_run(source, config, path)
    return train(config, path, resume=True)


def test_an_unchanged_fork_lands_on_the_same_result_and_needs_the_other_run_no_more(earlier, old, tmp_path):
    untouched = snapshot(old)
    path = tmp_path / "fork"
    fork_run(earlier, earlier.config, path)
    assert snapshot(old) == untouched
    away = shutil.move(old, tmp_path / "away")
    try:
        train(earlier.config, path, resume=True)
    finally:
        shutil.move(away, old)
    assert snapshot(old) == untouched
    assert same(learned(path), learned(old))
    mine, theirs = (json.loads((run / "summary.json").read_text()) for run in (path, old))
    assert timeless(mine) == timeless(theirs)
    mine, theirs = (read_metrics(run / "metrics.jsonl") for run in (path, old))
    assert [timeless(record) for record in mine] == [timeless(record) for record in theirs]


def test_schedules_go_on_where_they_were(config, tmp_path):
    rates = replace(config.sac, learning_rate={0: 1e-2, 90: 1e-4}, temperature={0: 0.1, 60: 0.01})
    config = replace(config, update_to_data={0: 1, 60: 2}, sac=rates)
    whole, fork = tmp_path / "whole", tmp_path / "fork"
    train(config, whole, resume=False)
    earlier = SourceRun.read(whole, load_checkpoint(whole / "checkpoint.pt.previous")["env_steps"])
    assert 0 < earlier.env_steps < 90
    go_on(earlier, config, fork)
    assert same(learned(fork), learned(whole))


def test_it_shares_what_never_changes_and_records_where_it_comes_from(earlier, old, tmp_path):
    path = tmp_path / "fork"
    config = replace(earlier.config, seed=9, update_to_data=3, sac=replace(earlier.config.sac, learning_rate=1e-3))
    origin = fork_run(earlier, config, path)
    assert origin == RunDirectory.read_facts(path)["origin"]
    assert origin["changed"] == {"seed": [5, 9], "update_to_data": [1, 3], "sac.learning_rate": [3e-4, 1e-3]}
    assert (origin["how"], origin["run"], origin["env_steps"]) == ("fork", str(old), earlier.env_steps)
    assert origin["shared"] == "hard links"
    assert (path / "checkpoint.pt").samefile(earlier.checkpoint)
    with EpisodeStore.open(path / "episodes") as mine, EpisodeStore.open(old / "episodes") as theirs:
        assert mine.ids() == theirs.ids()[: earlier.state["stored"]]
        assert len(mine) < len(theirs)
    first = next((path / "episodes" / "episodes").iterdir())
    assert first.samefile(old / "episodes" / "episodes" / first.name)

    before, untouched = earlier.state["learner"]["updates"], snapshot(old)
    train(config, path, resume=True)
    after = load_checkpoint(path / "checkpoint.pt")
    assert after["learner"]["updates"] - before == 3 * (90 - earlier.env_steps), "the new ratio holds from the fork on"
    assert not same(learned(path), learned(old))
    assert snapshot(old) == untouched

    again = SourceRun.read(path)
    assert again.facts()["origin"]["run"] == str(old), "the lineage goes back to the first"


def test_what_may_not_change_is_refused_with_the_reason(earlier, tmp_path):
    path, config = tmp_path / "fork", earlier.config
    for other, expected in (
        (replace(config, task="peg_insert"), r"task \(the episodes in its replay were played with it\)"),
        (replace(config, sac=SACConfig(hidden_sizes=(8,))), r"sac\.hidden_sizes \(the networks of the checkpoint"),
        (replace(config, warmup_steps=7), r"warmup_steps \(that part of the run is over\); it may change seed, "),
        (replace(config, reward=RewardConfig(kind="labels", path="x")), r"reward\.kind \(the episodes in its replay"),
    ):
        with pytest.raises(ConfigError, match=expected) as caught:
            fork_run(earlier, other, path)
        assert "\n" not in str(caught.value)
    labelled = replace(earlier, config=replace(config, reward=RewardConfig(kind="labels", path="x")))
    with pytest.raises(ConfigError, match="its rewards come from labels"):
        fork_run(labelled, labelled.config, path)
    with pytest.raises(CheckpointError, match=r"has \d+ rows; set replay\.capacity"):
        fork_run(earlier, replace(config, replay=replace(config.replay, capacity=20)), path)
    with pytest.raises(CheckpointError, match=r"shall end after 10; raise --steps"):
        fork_run(earlier, replace(config, env_steps=10), path)
    assert not path.exists()


def test_every_setting_that_is_marked_may_change_and_a_resumed_run_may_not():
    keys = {key.key for key in list_keys() if "a fork may change it" in key.notes}
    assert {"seed", "sac.discount", "replay.batch_size", "randomization.dynamics.mass", "engine.compile"} <= keys
    assert not {"task", "sac.hidden_sizes", "replay.history", "warmup_steps"} & keys
    before, after = load_config(), load_config(None, ["sac.discount=0.9", "seed=3", "randomization.dynamics.mass=0.1"])
    assert forkable_changes(before, after) == after
    assert resumable_changes(before, after) == before


@pytest.mark.slow
def test_by_the_command_line_killed_and_resumed(old, tmp_path):
    path = tmp_path / "fork"
    process = start("train", "--fork", old, "--out", path, "--steps", 130, "--set", "sac.discount=0.9")
    wait_for((path / "provenance.json").exists, process)
    process.kill()
    process.communicate()
    done = robot_rl("train", "--resume", "--out", path)
    assert done.returncode == 0, done.stderr
    assert json.loads((path / "summary.json").read_text())["env_steps"] == 130
    assert RunDirectory.read_facts(path)["origin"]["changed"]["sac.discount"] == [None, 0.9]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--resume", "--out", "x"), "leave out --resume"),
        (("--set", "task=peg_insert"), "a fork cannot change task"),
        (("--at", "1"), "no checkpoint after 1 env steps"),
    ],
)
def test_wrong_calls_are_one_line_and_leave_nothing(flags, expected, old, tmp_path):
    done = robot_rl("train", "--fork", old, *flags, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
