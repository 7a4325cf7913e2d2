"""Runs that were copied to another machine: what it lacks is refused in one line, and nothing is changed by that."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest
import torch
from running import SMALL, environment, robot_rl, snapshot

from robot_rl.config.components import TrainConfig
from robot_rl.errors import RunDirectoryError
from robot_rl.run.directory.run_directory import RunDirectory

without_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run; tests take a copy."""
    path = tmp_path_factory.mktemp("moved") / "run"
    done = robot_rl("train", "reach", "--out", path, *SMALL)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def copy(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "one copy")


def content(path):
    """All that is there, without the process that has it locked."""
    return {name: data for name, data in snapshot(path).items() if not name.endswith("lock")}


@pytest.mark.slow
def test_a_refused_resume_of_a_run_without_some_episodes_changes_nothing(copy):
    episodes = sorted((copy / "episodes" / "episodes").iterdir())
    episodes[-1].unlink()
    before = content(copy)
    done = robot_rl("train", "--resume", "--out", copy, "--steps", 150)
    assert done.returncode == 1
    known = f"knows {len(episodes)} episodes, but {copy}/episodes holds {len(episodes) - 1}; bring the missing files"
    assert known in done.stderr
    assert content(copy) == before


@pytest.mark.slow
@without_cuda
def test_a_run_of_another_device_is_neither_resumed_nor_forked_but_a_new_one_begins_from_it(copy, tmp_path):
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace("device: cpu", "device: cuda"))
    before, fork = content(copy), tmp_path / "fork"
    for line in (("--resume", "--out", copy), ("--fork", copy, "--out", fork)):
        done = robot_rl("train", *line)
        assert done.returncode == 1
        assert f"{copy} learns on cuda, and torch sees none here; a run that goes on keeps its device" in done.stderr
        cure = shlex.split(done.stderr.partition("robot-rl train ")[2])
    other = robot_rl("train", "--resume", "--out", copy, "--device", "cpu").stderr
    assert "other settings of device; resume it without changing them, or begin a new run with parts of it" in other
    assert content(copy) == before
    assert not fork.exists()
    begun = robot_rl("train", *cure, "--out", tmp_path / "new", "--steps", 25, "--episodes", 1)
    assert begun.returncode == 0, begun.stderr


@pytest.mark.slow
def test_a_run_of_an_arm_is_not_forked_without_one(copy, tmp_path):
    facts = json.loads((copy / "provenance.json").read_text())
    (copy / "provenance.json").write_text(json.dumps({**facts, "robot_file": "/workstation/robot.yaml"}))
    for line in (("train", "--fork", copy, "--out", tmp_path / "fork"), ("eval", copy)):
        done = robot_rl(*line)
        assert done.returncode == 1
        assert (
            "was trained on the arm of /workstation/robot.yaml; add --robot FILE, the robot file of this" in done.stderr
        )
    assert not (tmp_path / "fork").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", ["inspect", "eval", "data info", "data verify", "train --resume --out"])
def test_a_run_that_another_user_keeps_to_himself(command, tmp_path):
    """Root may read all, unless it gives that right up."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o000)
    words = [sys.executable, "-m", "robot_rl", *command.split(), tmp_path / "theirs"]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv of util-linux is not installed, and root may read all")
        words = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *words]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1, done.stderr
    assert "Permission denied; have its owner permit it" in done.stderr


def test_a_start_that_was_refused_is_forgotten(tmp_path):
    with RunDirectory.create(tmp_path / "run", TrainConfig(task="reach")) as run:
        run.begun = True
    before = run.provenance_path.read_bytes()
    with pytest.raises(RunDirectoryError, match="refused"), RunDirectory.resume(run.path):
        raise RunDirectoryError("refused")
    assert run.provenance_path.read_bytes() == before
    with pytest.raises(RunDirectoryError, match="later"), RunDirectory.resume(run.path) as again:
        again.begun = True
        raise RunDirectoryError("later")
    assert len(json.loads(run.provenance_path.read_text())["starts"]) == 2
