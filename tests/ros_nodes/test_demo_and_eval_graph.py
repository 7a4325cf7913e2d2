"""`robot-rl up demo` and `up eval`: in lockstep, to the bit what `robot-rl demo` and `eval` do in one process."""

import numpy as np
from running import SMALL, robot_rl

from robot_rl.data.store.store import EpisodeStore

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


def test_demonstrations_over_topics_can_be_killed_and_continued_and_are_those_of_one_process(bringup, tmp_path):
    up = bringup("demo", "--lockstep", "--episodes", 3, name="over_topics")
    up.wait_for_progress()
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
