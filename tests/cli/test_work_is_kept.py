"""What a wrong path or Ctrl-C must not cost: episodes that were played, updates that were made, a clear line."""

import signal
import subprocess
import sys
import time

import pytest
from running import SMALL, environment

from robot_rl.cli.main import main
from robot_rl.data.store.layout import count_stored
from robot_rl.data.store.store import EpisodeStore

LATE = """
import importlib.abc, sys

class Interrupted(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "robot_rl.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from robot_rl.__main__ import main
sys.exit(main())
"""
"""The command line, and Ctrl-C while it is being imported."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("kept") / "run"
    assert main(["train", "reach", *SMALL, "--out", str(path)]) == 0
    return path


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["--out", "--video"])
def test_eval_refuses_a_file_that_it_could_not_write_before_it_plays(run, tmp_path, capsys, flag):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for name, why in (("folder", "a directory is in the way"), ("file/x", "a file is in the way")):
        assert main(["eval", str(run), "--episodes", "1", flag, str(tmp_path / name)]) == 1
        printed = capsys.readouterr()
        assert why in printed.err
        assert "evaluate" not in printed.err, "nothing was played"
        assert printed.out == ""
    assert main(["eval", str(run), "--record", str(run / "episodes"), flag, str(tmp_path / "new/x.mp4")]) == 1
    assert not (tmp_path / "new").exists(), "a call that is refused leaves nothing"


def test_base_train_makes_the_folder_of_its_file_and_refuses_what_is_none_before_it_trains(run, tmp_path, capsys):
    (tmp_path / "file").touch()
    command = ["base", "train", "reach", "--demos", str(run), "--set", "base.updates=2", "--out"]
    assert main([*command, str(tmp_path / "file/base.pt")]) == 1
    assert "updates" not in capsys.readouterr().err
    assert main([*command, str(tmp_path / "new/folder/base.pt")]) == 0
    assert (tmp_path / "new/folder/base.pt").exists()


@pytest.mark.slow
def test_demonstrations_that_were_stopped_are_counted_and_gone_on_with(tmp_path):
    store = tmp_path / "demos"
    command = [sys.executable, "-m", "robot_rl", "demo", "reach", "--episodes", "500", "--out", store]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while count_stored(store) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    kept = count_stored(store)
    assert process.returncode == 130
    assert f"stopped after {kept} of 500 demonstrations, which are kept; the same command with --resume" in said
    assert main(["demo", "reach", "--episodes", str(kept + 2), "--out", str(store)]) == 1
    assert main(["demo", "reach", "--episodes", str(kept + 2), "--out", str(store), "--resume"]) == 0
    whole = tmp_path / "whole"
    assert main(["demo", "reach", "--episodes", str(kept + 2), "--out", str(whole)]) == 0
    with EpisodeStore.open(store) as one, EpisodeStore.open(whole) as other:
        assert one.ids() == other.ids()
        for name in one.ids():
            assert (one.read(name).action == other.read(name).action).all()


def test_ctrl_c_during_the_imports_is_one_line(tmp_path):
    done = subprocess.run([sys.executable, "-c", LATE], env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr, done.stdout) == (130, "robot-rl: stopped\n", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("train reach --set steps=1e9 --out new", "did you mean 'env_steps'?"),
        ("train reach --set replay.history=[] --out new", "at least 1 item"),
        ("train reach --set seed=99999999999999999999 --out new", "should be less than 18446744073709551616"),
        ("train reach --config dotted.yaml --out new", "in a file sections are nested: sac: {discount: ...}"),
        ("train gym: --out new", "no environment is named"),
        (
            "train gym:Pendulum-v1 --set environment.action_repeat=1000 --out new",
            "environment.action_repeat=1000: an episode of gym:Pendulum-v1 would be one step",
        ),
    ],
)
def test_wrong_settings_are_one_line_that_helps(line, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dotted.yaml").write_text("sac.discount: 0.9\n")
    assert main(line.split()) == 1
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert not (tmp_path / "new").exists()
