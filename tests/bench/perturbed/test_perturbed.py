"""Policies in a grid of worlds: which axes count, what is refused and reported, and real evaluations after a kill."""

import json
import math
import os
import shutil
import signal
import subprocess
import time

import pytest
import torch
import yaml
from running import SMALL, robot_rl, start

from robot_rl.bench.jobs import FailedJob, play
from robot_rl.bench.perturbed.axes import AXES, chosen_axes
from robot_rl.bench.perturbed.grid import labels, make_grid
from robot_rl.bench.perturbed.report import page, summary, write_page
from robot_rl.config.components import TrainConfig
from robot_rl.config.load import in_other_world
from robot_rl.config.randomization import WorldConfig
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.learn.checkpoint import save_checkpoint
from robot_rl.learn.networks.networks import policy_digest
from robot_rl.statistics import wilson_interval


def run_of(path, **settings):
    """The files of a run that a grid reads."""
    path.mkdir(parents=True)
    (path / "config.yaml").write_text(yaml.safe_dump({"task": "peg_insert"} | settings))
    (path / "provenance.json").write_text("{}")
    (path / "checkpoint.pt").write_bytes(b"")
    os.utime(path / "checkpoint.pt", (0, 0))
    return path


def answered(one, successes, episodes=20, seed=1_000_000, policy=None):
    """Write the result of an evaluation."""
    one.path.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "run": str(one.run),
        "episodes": episodes,
        "evaluation_seed": seed,
        "success_rate": successes / episodes,
        "success_ci95": list(wilson_interval(successes, episodes)),
        "cycle_time_s": 2.0,
        "policy": policy,
    }
    one.path.write_text(json.dumps(result))


def test_every_axis_is_a_setting_and_its_own_world_is_the_default():
    for axis in AXES:
        assert in_other_world(TrainConfig(), None, [axis.setting(axis.nominal)]) == TrainConfig()
        assert axis.nominal not in axis.strengths
        for strength in axis.strengths:
            changed = in_other_world(TrainConfig(), None, [axis.setting(strength)]).world
            assert getattr(changed, axis.name) != getattr(WorldConfig(), axis.name)
    (tilt,) = chosen_axes(["tilt"])
    assert in_other_world(TrainConfig(), None, [tilt.setting(3.5)]).world.tilt == pytest.approx(math.radians(3.5))
    with pytest.raises(UnknownNameError, match="did you mean 'tilt'"):
        chosen_axes(["tild"])


def test_axes_that_a_task_or_a_policy_does_not_have_are_named(tmp_path):
    peg = make_grid([run_of(tmp_path / "peg")], AXES, tmp_path, 20, None)
    unseen = ("brightness", "camera_position", "camera_rotation")
    assert peg.missing == dict.fromkeys(unseen, "the policy sees nothing")
    lift = make_grid([run_of(tmp_path / "lift", task="cube_lift", observations="pixels")], AXES, tmp_path, 20, None)
    assert lift.missing == dict.fromkeys(("clearance", "tilt"), "the task has no such setting")
    assert len(lift.evaluations) == 1 + sum(len(axis.strengths) for axis in lift.axes)
    with pytest.raises(ConfigError, match="gym:Pendulum-v1: clearance: the task has no such setting"):
        make_grid([run_of(tmp_path / "pole", task="gym:Pendulum-v1")], AXES, tmp_path, 20, None)


def test_runs_that_do_not_belong_together_are_refused(tmp_path):
    one, other = run_of(tmp_path / "a" / "seed-0"), run_of(tmp_path / "b" / "seed-0")
    assert labels([one, other]) == ["a_seed-0", "b_seed-0"]
    assert labels([one]) == ["seed-0"]
    with pytest.raises(ConfigError, match="given twice"):
        labels([one, one])
    with pytest.raises(ConfigError, match="compare runs of one kind"):
        make_grid([one, run_of(tmp_path / "reach", task="reach")], AXES, tmp_path, 20, None)
    (other / "checkpoint.pt").unlink()
    with pytest.raises(ConfigError, match="has no policy yet"):
        make_grid([other], AXES, tmp_path, 20, None)


def test_results_of_another_evaluation_are_refused_before_anything_starts(tmp_path):
    grid = make_grid([run_of(tmp_path / "run")], chosen_axes(["tilt"]), tmp_path / "out", 20, 7)
    first = grid.evaluations[0]
    first.path.parent.mkdir(parents=True)

    def refusal():
        with pytest.raises(ConfigError) as caught:
            play(grid.evaluations, 1)
        return str(caught.value)

    answered(first, 5, episodes=10, seed=7)
    assert "has other episodes than 20 of seed 7" in refusal()
    first.path.write_text('{"episodes": 20, "evaluation_seed": 7, "run": "x"}')
    assert "is of another run, x" in refusal()
    first.path.write_text("[1")
    assert "is no result" in refusal()
    answered(first, 5, seed=7)
    os.utime(first.run / "checkpoint.pt", (2**32, 2**32))
    assert "is of an earlier policy" in refusal()


def test_results_that_were_moved_with_their_run_count_as_long_as_the_policy_is_the_same(tmp_path):
    there, here = run_of(tmp_path / "there" / "run"), tmp_path / "here"
    policy = {"weight": torch.ones(2)}
    save_checkpoint(there / "checkpoint.pt", {"deployed": {"policy": policy}})
    grid = make_grid([there], chosen_axes(["tilt"]), tmp_path / "there" / "out", 20, 7)
    answered(grid.evaluations[0], 5, seed=7, policy=policy_digest(policy))
    shutil.move(tmp_path / "there", here)
    os.utime(here / "run" / "checkpoint.pt", (2**32, 2**32))  # copied last
    moved = make_grid([here / "run"], chosen_axes(["tilt"]), here / "out", 20, 7, device="cpu").evaluations[0]
    moved.check()
    assert moved.finished and moved.command()[-2:] == ["--device", "cpu"]
    save_checkpoint(here / "run" / "checkpoint.pt", {"deployed": {"policy": {"weight": torch.zeros(2)}}})
    with pytest.raises(ConfigError, match="is of another run"):
        moved.check()


def test_the_report_has_a_table_per_axis_with_intervals_and_the_own_world_in_its_place(tmp_path):
    runs = [run_of(tmp_path / "one"), run_of(tmp_path / "two")]
    grid = make_grid(runs, chosen_axes(["clearance", "tilt", "brightness"]), tmp_path / "out", 20, None)
    for one in grid.evaluations:
        if (one.label, one.strength) != ("two", 3.5):
            answered(one, 20 if one.axis is None else 3)
    answer = summary(grid, [FailedJob(grid.evaluations[-1], "ended with exit code 1")])
    assert (answer["evaluations"], answer["wanted"]) == (15, 16)
    tilt = answer["axes"]["tilt"]["one"]
    assert [point["strength"] for point in tilt] == [0.0, 1.0, 2.0, 3.0, 3.5]
    assert [point["nominal"] for point in answer["axes"]["clearance"]["one"]] == [False, False, False, True]
    text = page(grid, answer, "robot-rl bench perturbed")
    assert "| tilt [deg] | one | two |" in text
    assert "| 0, its own | 1.00 (0.84 to 1.00) | 1.00 (0.84 to 1.00) |" in text
    assert "| 3.5 | 0.15 (0.05 to 0.36) |  |" in text
    assert "- brightness: the policy sees nothing" in text
    assert "- two, tilt [deg] 3.5: ended with exit code 1" in text
    assert write_page(grid, answer, "x", tmp_path / "out").is_file()
    assert (tmp_path / "out" / "perturbed.png").stat().st_size > 5_000


@pytest.mark.slow
def test_a_killed_grid_is_gone_on_with_and_gives_what_eval_gives(tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    few = ("--steps", "10", "--episodes", "1", "--set", "demonstrations=0", "--set", "evaluation.curve_interval=0")
    assert robot_rl("train", "reach", "--out", run, *SMALL, *few).returncode == 0
    call = ("bench", "perturbed", run, "--out", out, "--episodes", "1", "--axes", "wrench_bias", "tilt", "--json")
    first = start(*call, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    waiting = time.monotonic() + 120
    while not list(out.glob("run/*.json")) and time.monotonic() < waiting:
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    (kept, *_) = out.glob("run/*.json")
    before = kept.stat().st_mtime_ns
    done = robot_rl(*call)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["evaluations"], answer["wanted"], list(answer["missing"])) == (4, 4, ["tilt"])
    assert kept.stat().st_mtime_ns == before
    assert json.loads((out / "run" / "wrench_bias-5.json").read_text())["changes"] == {"world.wrench_bias": 5.0}
    assert json.loads((out / "results.json").read_text()) == answer
