"""Training that is killed, stopped or out of disk space: it loses nothing finished and ends as if it had not been."""

import contextlib
import json
import os
import pty
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
from running import SMALL, learned, robot_rl, same, start, timeless, wait_for

from robot_rl.data.store.codec import decode
from robot_rl.learn.checkpoint import load_checkpoint
from robot_rl.run.directory.metrics import read_metrics

pytestmark = pytest.mark.slow

TRAIN = (
    *("train", "reach", *SMALL, "--episodes", "1"),
    *("--set", "update_to_data=1", "--set", "evaluation.curve_episodes=1"),
)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    path = tmp_path_factory.mktemp("uninterrupted") / "run"
    assert robot_rl(*TRAIN, "--out", path).returncode == 0
    return path


def episode_files(run):
    return {path.name: path.read_bytes() for path in (run / "episodes" / "episodes").glob("*.zip")}


def episode_count(run):
    return len(list((run / "episodes" / "episodes").glob("*.zip")))


def assert_same_result(run, other):
    assert same(learned(run), learned(other))
    summary, expected = (json.loads((path / "summary.json").read_text()) for path in (run, other))
    assert timeless(summary) == timeless(expected)
    metrics, expected = (read_metrics(path / "metrics.jsonl") for path in (run, other))
    assert [timeless(record) for record in metrics] == [timeless(record) for record in expected]
    assert episode_files(run).keys() == episode_files(other).keys()


def test_after_kill_9_no_finished_episode_is_lost_and_resume_lands_on_the_same_result(uninterrupted, tmp_path):
    run = tmp_path / "run"
    process = start(*TRAIN, "--out", run)
    looked_at = 0

    def ahead_of_its_checkpoint():
        nonlocal looked_at
        if not (run / "checkpoint.pt.previous").exists() or episode_count(run) == looked_at:
            return False
        process.send_signal(signal.SIGSTOP)  # so that it is still so when it is killed
        state = load_checkpoint(run / "checkpoint.pt")
        if state["env_steps"] > 0 and episode_count(run) > state["stored"]:
            return True
        looked_at = episode_count(run)
        process.send_signal(signal.SIGCONT)
        return False

    wait_for(ahead_of_its_checkpoint, process)
    process.kill()
    process.communicate()
    assert not (run / "summary.json").exists()
    finished, journals = episode_files(run), list((run / "episodes" / "partial").glob("*.journal"))
    stored = load_checkpoint(run / "checkpoint.pt")["stored"]

    done = robot_rl("train", "--resume", "--out", run)
    assert done.returncode == 0, done.stderr
    assert f"{len(finished) - stored} episodes recorded after the checkpoint were set aside" in done.stderr
    assert done.stderr.count("the writer was interrupted; partial/") >= len(journals)
    aside = {path: path.read_bytes() for path in (run / "episodes" / "aside").glob("*/*.zip")}
    kept = [content for name, content in episode_files(run).items() if name in sorted(finished)[:stored]]
    assert set(finished.values()) <= {*kept, *aside.values()}
    for path in set(aside) - {path for path in aside if aside[path] in finished.values()}:
        assert decode(aside[path]).metadata["interrupted"]  # the episode that was running, up to its newest step
    assert_same_result(run, uninterrupted)


@pytest.mark.parametrize("moment", ["demonstrating", "training"])
def test_ctrl_c_saves_says_how_to_resume_and_that_lands_on_the_same_result(moment, uninterrupted, tmp_path):
    run = tmp_path / "run with spaces"
    process = start(*TRAIN, "--out", run)
    wait_for(lambda: episode_count(run) >= (1 if moment == "demonstrating" else 4), process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert "stopping at the end of this episode" in errors
    assert not (run / "summary.json").exists()

    command = errors.partition("continue with: robot-rl ")[2]
    done = robot_rl(*shlex.split(command))
    assert done.returncode == 0, done.stderr
    assert not (run / "episodes" / "aside").exists()
    assert_same_result(run, uninterrupted)


def test_a_second_ctrl_c_stops_at_once_and_leaves_the_last_checkpoint(tmp_path):
    run = tmp_path / "run"
    # Updates so slow that an episode takes a minute.
    slow = ("--set", "sac.hidden_sizes=[512, 512]", "--set", "update_to_data=40", "--set", "replay.batch_size=512")
    process = start(*TRAIN, *slow, "--set", "warmup_steps=1", "--out", run)
    wait_for((run / "episodes" / "partial" / "000002.journal").exists, process)  # the first online episode runs
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "stopping at the end of this episode" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped at once" in errors
    assert f"continue with: robot-rl train --resume --out {run}" in errors
    assert load_checkpoint(run / "checkpoint.pt")["env_steps"] == 0


@pytest.fixture
def small_disk(tmp_path):
    """A disk of its own, where that may be mounted; else None."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        yield None
        return
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_full_disk_is_an_error_leaves_all_that_was_saved_and_resume_works_with_space(
    uninterrupted, small_disk, tmp_path
):
    """On a disk that is really full; or, where none can be mounted, with a limit on the size of files."""
    run = shutil.copytree(uninterrupted, (small_disk or tmp_path) / "run")
    checkpoint, before = load_checkpoint(run / "checkpoint.pt"), episode_files(run)
    ballast = run.parent / "ballast"
    space = (run / "checkpoint.pt").stat().st_size // 2
    options = {}
    if small_disk:
        ballast.write_bytes(bytes(shutil.disk_usage(small_disk).free - space))
    else:
        options["preexec_fn"] = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (space, space))

    more = ("train", "--resume", "--out", run, "--steps", 150)
    done = robot_rl(*more, **options)
    assert (done.returncode, done.stdout) == (1, "")
    assert ("the disk is full; make room" if small_disk else "raise the limit") in done.stderr
    assert "Traceback" not in done.stderr
    assert load_checkpoint(run / "checkpoint.pt")["env_steps"] == checkpoint["env_steps"]
    assert same(learned(run), learned(uninterrupted))
    now = episode_files(run)
    assert {name: now[name] for name in before} == before

    ballast.unlink(missing_ok=True)
    done = robot_rl(*more)
    assert done.returncode == 0, done.stderr
    assert json.loads((run / "summary.json").read_text())["env_steps"] == 150


def test_a_closed_terminal_stops_and_saves_and_the_run_goes_on(uninterrupted, tmp_path):
    run = tmp_path / "run"
    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "robot_rl", *TRAIN, "--out", str(run)]
    process = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, start_new_session=True)
    os.close(inside)
    shown = threading.Thread(target=read_all, args=(terminal,), daemon=True)
    shown.start()
    deadline = time.monotonic() + 120
    while not (run / "checkpoint.pt").exists() or episode_count(run) < 4:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGHUP)  # as the kernel does for the session of a terminal that is closed
    os.close(terminal)
    assert process.wait(60) == 130
    state = load_checkpoint(run / "checkpoint.pt")
    assert state["stored"] == episode_count(run), "all that was played is in the checkpoint"
    assert robot_rl("train", "--resume", "--out", run).returncode == 0
    assert_same_result(run, uninterrupted)


def read_all(descriptor):
    """Read what a terminal shows until it is closed."""
    with contextlib.suppress(OSError):
        while os.read(descriptor, 4096):
            pass


def test_a_kill_after_the_evaluation_leaves_one_record_of_it(uninterrupted, tmp_path):
    run, metrics = tmp_path / "run", tmp_path / "run/metrics.jsonl"
    process = start(*TRAIN, "--out", run)
    wait_for(lambda: metrics.exists() and '"evaluation"' in metrics.read_text(), process)
    process.kill()
    process.communicate()
    assert len(read_metrics(metrics, "evaluation")) == 1
    done = robot_rl("train", "--resume", "--out", run)
    assert done.returncode == 0, done.stderr
    assert_same_result(run, uninterrupted)
