"""`robot-rl new-task` as users call it: what it writes passes its own test, and a bad name gets one line."""

import os
import subprocess
import sys

import pytest
from documents import ROOT
from running import environment, robot_rl

from robot_rl.cli.main import main


def test_what_is_written_passes_its_own_test(tmp_path):
    done = robot_rl("new-task", "slide_in", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "slide_in"
    files = {"slide_in.py", "test_slide_in.py", "pyproject.toml", "README.md"}
    assert {path.name for path in folder.iterdir()} == files
    assert "class SlideInTask" in (folder / "slide_in.py").read_text(encoding="utf-8")
    assert all(f"written: slide_in/{name}" in done.stdout for name in files)
    path = os.pathsep.join([str(folder), str(ROOT)])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    options = {"cwd": folder, "env": environment(PYTHONPATH=path), "capture_output": True, "text": True}
    tested = subprocess.run(command, timeout=120, check=False, **options)
    assert tested.returncode == 0, tested.stdout
    assert "3 passed" in tested.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("here", "here exists, and is never overwritten"),
        ("9a", "'9a' cannot name a task: small letters, digits and underscores"),
        ("../up", "'../up' cannot name a task"),
        ("class", "'class' cannot name a task"),
        ("reach", "reach is a task that is installed already"),
        ("random", "random is a module of Python"),
    ],
)
def test_a_bad_name_gets_one_line_and_leaves_nothing(tmp_path, monkeypatch, capsys, name, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert main(["new-task", name]) == 1
    said = capsys.readouterr().err.strip()
    assert reason in said and "\n" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
