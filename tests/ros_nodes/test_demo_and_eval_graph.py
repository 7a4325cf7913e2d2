"""`robot-rl up demo` and `up eval`: in lockstep, to the bit what `robot-rl demo` and `eval` do in one process."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from running import SMALL, robot_rl

from robot_rl.arm.control_thread import ACTING, own_priority, take_priority
from robot_rl.data.store.store import EpisodeStore

with own_priority():
    ALLOWED = take_priority()
"""Whether this machine allows real-time priority."""
EXACT = ("action", "reward", "source", "terminated", "truncated")


def compare(over_topics, in_process, count):
    with EpisodeStore.open(over_topics) as one, EpisodeStore.open(in_process) as other:
        assert one.ids() == other.ids()
        assert len(one) == count
        for name in one.ids():
            a, b = one.read(name), other.read(name)
            for field in EXACT:
                assert np.array_equal(getattr(a, field), getattr(b, field)), (name, field)
            for key in b.observations:
                assert np.array_equal(a.observations[key], b.observations[key]), (name, key)


def real_time(pid):
    """The real-time priorities of a process, by thread; of threads that have one."""
    priorities = {}
    for thread in map(int, (path.name for path in Path(f"/proc/{pid}/task").iterdir())):
        if os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO:
            priorities[thread] = os.sched_getparam(thread).sched_priority
    return priorities


@pytest.mark.skipif(not ALLOWED, reason="this machine does not allow real-time priority")
def test_in_real_time_the_thread_that_acts_has_priority_and_nothing_else_in_its_process(bringup):
    up = bringup("demo", "--episodes", 3)
    up.wait_for_progress(1)
    pid = up.pid("demonstrations")
    assert real_time(pid) == {pid: ACTING}
    up.process.send_signal(signal.SIGINT)
    up.end()


def test_demonstrations_over_topics_can_be_killed_and_continued_and_are_those_of_one_process(bringup, tmp_path):
    up = bringup("demo", "--lockstep", "--episodes", 3, name="over_topics")
    up.wait_for_progress()
    assert not real_time(up.pid("demonstrations")), "a simulation that waits needs no priority"
    up.kill("demonstrations")
    assert up.end() == 0, up.text()
    assert "3 demonstrations, 100% successful" in up.text()
    done = robot_rl("demo", "reach", "--episodes", 3, "--out", tmp_path / "in_process")
    assert done.returncode == 0, done.stderr
    compare(tmp_path / "over_topics", tmp_path / "in_process", 3)


def test_an_evaluation_over_topics_is_that_of_one_process(bringup, tmp_path):
    run, held_out = tmp_path / "run", ("--episodes", 3)
    trained = robot_rl("train", "reach", *SMALL, "--out", run)
    assert trained.returncode == 0, trained.stderr
    up = bringup("eval", "--lockstep", "--run", run, *held_out, name="over_topics")
    assert up.end() == 0, up.text()
    done = robot_rl("eval", run, *held_out, "--record", tmp_path / "in_process")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] in up.text()
    compare(tmp_path / "over_topics", tmp_path / "in_process", 3)


def test_what_is_missing_is_said_once(bringup):
    up = bringup("eval", "--lockstep")
    assert up.end() == 2
    assert "job:=eval needs run:=DIRECTORY" in up.text()
    assert "[evaluation] started" in up.text()
    assert up.text().count("[evaluation] started") == 1
