"""A directory that is built aside appears whole or not at all, whatever ends the process."""

import os
import signal
import subprocess
import sys

import pytest

from robot_rl.errors import RunDirectoryError
from robot_rl.system.build_aside import build_aside

BUILDER = """
import sys, time
from pathlib import Path
from robot_rl.system.build_aside import build_aside
with build_aside(Path(sys.argv[1])) as built:
    for number in range(20):
        (built / str(number)).write_text("x")
        print(number, flush=True)
        time.sleep(float(sys.argv[2]))
print("built", flush=True)
"""


def builder(out, pause=0.01):
    return subprocess.Popen(
        [sys.executable, "-c", BUILDER, str(out), str(pause)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_it_appears_when_it_is_whole_and_leaves_nothing_else(tmp_path):
    out = tmp_path / "new"
    with build_aside(out) as built:
        (built / "part").mkdir()
        (built / "part" / "file").write_text("x")
        assert not out.exists()
    assert (out / "part" / "file").read_text() == "x"
    assert [entry.name for entry in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_nothing_is_left(tmp_path, error):
    with pytest.raises(error), build_aside(tmp_path / "new") as built:
        (built / "file").write_text("x")
        raise error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("after", [0, 3, 19])
def test_a_killed_builder_leaves_no_such_directory_and_the_next_one_begins_anew(tmp_path, after):
    out = tmp_path / "new"
    killed = builder(out)
    while int(killed.stdout.readline()) < after:
        pass
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not out.exists() or len(list(out.iterdir())) == 20
    if not out.exists():
        (tmp_path / ".new.unfinished" / "built" / "stale").write_text("of the killed one")
        assert builder(out, 0).wait() == 0
    assert sorted(int(entry.name) for entry in out.iterdir()) == list(range(20))
    assert [entry.name for entry in tmp_path.iterdir()] == ["new"]


def test_two_do_not_build_the_same(tmp_path):
    first = builder(tmp_path / "new", 0.2)
    first.stdout.readline()
    with pytest.raises(RunDirectoryError, match=f"in use by process {first.pid}"), build_aside(tmp_path / "new"):
        pass
    first.send_signal(signal.SIGTERM)
    first.wait()


def test_what_is_there_stays(tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("mine")
    with pytest.raises(RunDirectoryError, match="new is not empty; choose"), build_aside(tmp_path / "new"):
        pass
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RunDirectoryError, match="link is not empty"), build_aside(tmp_path / "link"):
        pass
    with build_aside(tmp_path / "late") as built:
        (tmp_path / "late").mkdir()
        (built / "file").write_text("x")
    assert os.listdir(tmp_path / "late") == ["file"], "an empty directory gives way"
    assert (tmp_path / "new" / "mine").read_text() == "mine"
