"""Suites: their files, what is concluded from their runs, and the runs themselves as real processes."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest
import yaml
from PIL import Image
from running import robot_rl, start

from robot_rl.bench.jobs import play, play_shown
from robot_rl.bench.suite.definition import Suite, read_suite
from robot_rl.bench.suite.names import suite_names
from robot_rl.bench.suite.report import SuiteResult, page
from robot_rl.bench.suite.runs import SuiteRun, run_path
from robot_rl.cli.main import main
from robot_rl.config.components import TrainConfig
from robot_rl.errors import ConfigError, UnknownNameError
from robot_rl.viz.suite_plot import suite_plot

SMALL = {
    "title": "Small",
    "tasks": ["gym:Pendulum-v1"],
    "tuning_tasks": ["reach"],
    "best_return": 100,
    "settings": {
        "env_steps": 100,
        "warmup_steps": 50,
        "update_to_data": 1,
        "sac": {"hidden_sizes": [8]},
        "environment": {"max_steps": 25},
        "evaluation": {"episodes": 2, "curve_interval": 50, "curve_episodes": 1, "video_episodes": 0},
    },
}


@pytest.mark.parametrize("name", suite_names())
def test_our_suites_can_be_read_and_keep_results_and_tuning_apart(name):
    suite = read_suite(name)
    for task in (*suite.tasks, *suite.tuning_tasks):
        assert suite.config(task, 3).task == task
    assert suite.tuning_tasks == suite.tasks or not set(suite.tasks) & set(suite.tuning_tasks)
    assert suite.config(suite.tasks[0], 3, "some/python").environment.python == "some/python"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tasks": []}, "expected `key: value` lines with `tasks`"),
        ({"task": ["a"]}, "unknown keys task; valid: best_return, notes"),
        ({"tasks": "reach"}, "tasks must be a list of texts"),
        ({"best_return": 0}, "best_return must be a number above 0"),
        ({"settings": {"sac": {"discunt": 0.9}}}, "did you mean 'sac.discount'"),
        ({"settings": [1]}, "settings must be a section"),
        ({"tuning_tasks": ["reach", "reach"]}, "tuning_tasks: reach is given twice"),
    ],
)
def test_a_wrong_suite_is_refused(tmp_path, change, expected):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(SMALL | change))
    with pytest.raises(ConfigError, match=expected):
        read_suite(str(file))


def test_an_unknown_suite_names_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"metaworld-hard.*did you mean 'metaworld-hard'"):
        read_suite("metaworld_hard")


def result(scores, curves=None):
    suite = Suite("some", "Some", tuple(scores), notes=("all alike",))
    return SuiteResult(suite, scores, curves or {}, {task: [1.0] * len(seeds) for task, seeds in scores.items()})


def test_the_interquartile_mean_leaves_the_extremes_out_and_the_table_shows_them():
    shown = result({"easy": [1.0, 1.0, 0.9], "hard": [0.0, 0.5, 0.6], "odd": [0.7, 0.8]})
    summary = shown.summary()
    assert summary["iqm"] == pytest.approx(np.mean([0.6, 0.7, 0.8, 0.9]))
    assert summary["iqm_ci95"][0] < summary["iqm"] < summary["iqm_ci95"][1]
    assert summary["mean"] == pytest.approx(np.mean([2.9 / 3, 1.1 / 3, 0.75]))
    text = page(shown, [], "robot-rl bench suite")
    assert "| hard | 0.37 | 0.00 0.50 0.60 | 1 |" in text
    assert "- all alike" in text
    assert result({}).summary()["iqm"] is None


@pytest.mark.parametrize("seeds", [1, 3, 7])
def test_the_interval_of_the_mean_is_one_of_the_mean_also_where_tasks_have_other_numbers_of_seeds(seeds):
    fixed = result({"solved": [1.0] * seeds, "never": [0.0]}).summary()
    assert fixed["mean"] == 0.5
    assert fixed["mean_ci95"] == [0.5, 0.5], "no run differs from another one of its task"
    varied = result({"solved": [1.0] * seeds, "open": [0.0, 1.0]}).summary()
    assert varied["mean"] == 0.75
    assert varied["mean_ci95"] == [0.5, 1.0]


def test_a_task_in_which_nothing_succeeds_has_no_score_instead_of_zero(tmp_path):
    runs = [SuiteRun(task, 0, TrainConfig(task=task), tmp_path / task) for task in ("reach", "swing")]
    for run, rate in zip(runs, (0.5, None), strict=True):
        run.path.mkdir()
        (run.path / "metrics.jsonl").touch()
        made = {"env_steps": run.config.env_steps, "success_rate": rate, "return_mean": 4.0, "wall_s": 6.0}
        (run.path / "summary.json").write_text(json.dumps(made))
    shown = SuiteResult.of(Suite("some", "Some", ("reach", "swing")), runs)
    assert (shown.summary()["iqm"], shown.summary()["unscored"]) == (0.5, ["swing"])
    assert "- swing: not scored: nothing succeeds there, so give the suite best_return" in page(shown, [], "")
    only = SuiteResult.of(Suite("some", "Some", ("swing",)), runs[1:]).summary()
    assert (only["iqm"], only["unscored"]) == (None, ["swing"])
    assert SuiteResult.of(Suite("some", "Some", ("swing",), best_return=8.0), runs[1:]).summary()["iqm"] == 0.5


def test_the_curve_covers_the_steps_that_all_runs_have():
    up = [(100, 0.0), (200, 0.5), (300, 1.0)]
    steps, middle, band = result({"a": [1.0] * 4}, {"a": [up, up, up, [*up, (400, 1.0)]]}).over_steps()
    assert (steps[0], steps[-1]) == (100, 300)
    assert middle == pytest.approx((steps - 100) / 200)
    assert band == pytest.approx(np.stack([middle, middle], 1))
    thresholds, shares = result({"a": [0.0, 0.5, 1.0, 1.0]}).profile()
    assert dict(zip(thresholds.round(2), shares, strict=True)) | {0.0: 0.75, 0.5: 0.5, 1.0: 0.0} == dict(
        zip(thresholds.round(2), shares, strict=True)
    )


def test_scores_that_are_returns_are_shown_wherever_they_lie(tmp_path):
    low, high = (
        SuiteResult(
            Suite("some", "Some", ("a",)), {"a": [score] * 2}, {"a": [[(0, score), (9, score)]] * 2}, {"a": [1.0] * 2}
        )
        for score in (-3.0, 4.0)
    )
    for shown, (first, last) in ((low, (-3.0, 1.0)), (high, (0.0, 4.0))):
        thresholds, shares = shown.profile()
        assert (thresholds[0], thresholds[-1], shares[-1]) == (first, last, 0.0)
        suite_plot(shown.over_steps(), shown.profile(), tmp_path / "suite.png", title="Some")
        picture = np.asarray(Image.open(tmp_path / "suite.png").convert("RGB")).astype(int)
        curve = picture[60:-60, 80 : picture.shape[1] // 2 - 250]  # of the left panel, beside its legend
        assert ((curve[..., 2] - curve[..., 0]) > 100).sum() > 100


def test_a_directory_of_other_settings_is_refused_before_anything_starts(tmp_path):
    other = tmp_path / "run"
    other.mkdir()
    (other / "config.yaml").write_text("task: reach\n")
    (other / "provenance.json").write_text("{}")
    run = SuiteRun("reach", 0, TrainConfig(task="reach", seed=5), other)
    with pytest.raises(ConfigError, match="other settings than this suite's; choose another --out"):
        play([run], 1)
    with pytest.raises(ConfigError, match="other settings than this suite's"):
        play_shown([run], 0, "suite", "runs")  # what is reported is checked, too
    assert run_path(tmp_path, "gym:a/b-v0", 2) == tmp_path / "gym_a_b-v0" / "seed-2"


def suite_command(tmp_path, *more):
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump(SMALL))
    command = ["bench", "suite", "--suite", file, "--out", tmp_path / "out"]
    return [*command, "--seeds", "0", "1", "--jobs", "2", "--json", *more]


@pytest.mark.slow
def test_a_killed_suite_is_gone_on_with_and_what_fails_is_named(tmp_path):
    first = start(*suite_command(tmp_path), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    waiting = time.monotonic() + 90
    while not list(tmp_path.glob("out/*/seed-*/episodes/episodes/*")) and time.monotonic() < waiting:
        time.sleep(0.1)
    first.send_signal(signal.SIGKILL)
    first.wait()
    time.sleep(1.0)  # the runs end with their parent
    done = robot_rl(*suite_command(tmp_path))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["runs"], answer["wanted"], answer["failed"]) == (2, 2, [])
    assert len(answer["tasks"]["gym:Pendulum-v1"]["scores"]) == 2
    assert (tmp_path / "out" / "suite.png").stat().st_size > 1000
    again = robot_rl(*suite_command(tmp_path, "--report"))
    assert json.loads(again.stdout)["iqm"] == answer["iqm"]

    spoilt = tmp_path / "out" / "gym_Pendulum-v1" / "seed-1"
    (spoilt / "summary.json").unlink()
    (spoilt / "checkpoint.pt").write_bytes(b"no checkpoint")
    failed = robot_rl(*suite_command(tmp_path))
    assert failed.returncode == 1
    (reason,) = json.loads(failed.stdout)["failed"]
    assert reason.startswith("gym:Pendulum-v1, seed 1: ended with exit code 1: robot-rl: ")
    assert os.path.exists(tmp_path / "out" / "report.md")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--seeds 0 1 0", "--seeds: 0 is given twice"),
        ("--tasks gym:Pendulum-v1 gym:Pendulum-v1", "--tasks: gym:Pendulum-v1 is given twice"),
        ("--out {run}", "is a run itself; choose another --out"),
    ],
)
def test_what_would_count_twice_or_lie_in_a_run_is_refused(tmp_path, capsys, flags, says):
    file, run = tmp_path / "small.yaml", tmp_path / "run"
    file.write_text(yaml.safe_dump(SMALL))
    run.mkdir()
    (run / "provenance.json").write_text("{}")
    out = str(tmp_path / "out")
    assert main(["bench", "suite", "--suite", str(file), "--out", out, *flags.format(run=run).split()]) == 1
    assert says in capsys.readouterr().err
    assert [path.name for path in run.iterdir()] == ["provenance.json"]


def test_results_and_tuning_have_seeds_of_their_own(tmp_path):
    refused = robot_rl(*suite_command(tmp_path)[:-6], "--seeds", "100")
    assert refused.returncode == 1
    assert "seeds [100] without --tuning" in refused.stderr
