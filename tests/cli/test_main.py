"""The command line, used as a user would: answers, help, and every way to get it wrong."""

import json
import re
import subprocess
import sys

import pytest
import torch
from running import SMALL, learned, robot_rl, same, snapshot

from robot_rl.config.describe import list_keys
from robot_rl.run.directory.run_directory import RunDirectory

DATA_COMMANDS = ("ls", "info", "verify", "view", "export", "import", "merge", "split", "prune")
COMMANDS = (
    "tasks",
    "devices",
    "demo",
    "train",
    "eval",
    "inspect",
    "data",
    *(f"data {name}" for name in DATA_COMMANDS),
    "bench",
)


# ------------------------------------------------------------------------- help


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_says_what_every_argument_is_for(command):
    done = robot_rl(*command.split(), "--help")
    assert (done.returncode, done.stderr) == (0, "")
    usage, _, described = done.stdout.partition("\n\n")
    for flag in re.findall(r"--[a-z-]+", usage):
        assert re.search(rf"^  .*{flag}\b.*\s\s+[a-zA-Z]", described, re.MULTILINE), f"{flag} is not explained"


def test_help_does_not_wait_for_heavy_packages():
    code = (
        "import sys, robot_rl.cli.main as cli\ntry: cli.main(['--help'])\nexcept SystemExit: print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(re.findall(r"'(\w+)'", done.stdout.splitlines()[-1]))
    assert not loaded & {
        "torch",
        "mujoco",
        "matplotlib",
        "scipy",
        "zarr",
        "av",
        "tensorboard",
        "gymnasium",
        "numpy",
        "pydantic",
    }


# ------------------------------------------------------------------------ usage

LISTS_TASKS = (
    "valid: belt, cable_clip, cube_lift, handover, pan_flip, pan_flip_wrench, peg_hard, peg_insert, ram_insert, reach, "
    "relocate"
)

WRONG = [
    # usage: exit code 2
    ("", 2, "COMMAND"),
    ("trian reach", 2, "'train', 'eval'"),
    ("train reach --setp 3", 2, "--steps N"),
    ("train reach --step 3", 2, "unknown argument --step"),
    ("train reach --seed x", 2, "whole number of at least 0"),
    ("train reach --steps -1", 2, "whole number of at least 0"),
    ("train reach --min-success 95", 2, "from 0 to 1"),
    ("train reach --device gpu", 2, "'cpu', 'cuda'"),
    ("train reach --resume", 2, "--resume needs --out"),
    ("train --resume --out run --demos gone", 2, "has its demonstrations already; leave out --demos gone, or begin"),
    ("train reach --demos one --demos two", 2, "takes one store; `robot-rl data merge` makes one of several"),
    ("eval run --camera front", 2, "--camera needs --video"),
    ("demo reach", 2, "--out"),
    # facts: exit code 1
    ("train reach --steps 0", 1, "nothing would be learned; set one of them"),
    ("train rech", 1, LISTS_TASKS),
    ("demo rech --out new", 1, LISTS_TASKS),
    ("bench lerner", 2, "'data', 'env', 'learner', 'replay'"),
    ("train reach --set sac.discont=0.9", 1, "did you mean 'sac.discount'"),
    ("train reach --set seed=many", 1, "valid: int >= 0"),
    ("train reach --set seed", 1, "expected key=value"),
    ("train reach --set sac.target_subset=9", 1, "target_subset 9 exceeds ensemble_size"),
    ("train reach --config none.yaml", 1, "cannot read configuration file none.yaml"),
    ("train --resume --out none", 1, "none holds no run"),
    ("eval none", 1, "none holds no run"),
    ("inspect none", 1, "neither a run directory"),
    ("train reach --out /proc/none", 1, "cannot write /proc/none"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("line", "code", "message"), WRONG)
def test_wrong_usage_says_what_is_valid_and_leaves_nothing_behind(line, code, message, tmp_path):
    done = robot_rl(*line.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
@pytest.mark.parametrize("command", ["train", "eval"])
def test_cuda_where_there_is_none(command, copy, tmp_path):
    arguments = ("reach", "--out", tmp_path / "new") if command == "train" else (copy,)
    done = robot_rl(command, *arguments, "--device", "cuda")
    assert done.returncode == 1
    assert "torch sees no CUDA device; use --device cpu" in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_run_that_learned_on_cuda_is_evaluated_where_there_is_none(copy):
    settings = copy / "config.yaml"
    text = settings.read_text()
    settings.write_text(text.replace("device: cpu", "device: cuda", 1))
    assert settings.read_text() != text
    resumed = robot_rl("train", "--resume", "--out", copy)
    assert resumed.returncode == 1
    assert "go on where there is one, or begin a new run" in resumed.stderr
    done = robot_rl("eval", copy, "--episodes", "1")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("learned on CUDA, which torch does not see here: its policy is evaluated on the CPU") == 1


def test_a_run_in_the_place_of_demonstrations_gets_the_flag_that_takes_them(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "provenance.json").touch()
    done = robot_rl("train", "reach", "--demos", "one", "--out", "two", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--init-from one --init demonstrations begins with its demonstrations, --demos one/episodes" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_everything_wrong_in_a_configuration_file_is_told_at_once(tmp_path):
    (tmp_path / "my.yaml").write_text("env_stps: 5\nsac:\n  discount: high\n")
    done = robot_rl("train", "reach", "--config", "my.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(r"env_stps \(my.yaml\): unknown key; did you mean 'env_steps'", done.stderr)
    assert re.search(r"sac.discount \(my.yaml\): 'high'.*valid: float > 0 and < 1", done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["my.yaml"]


# ---------------------------------------------------------------------- answers


def test_tasks_and_settings_for_people_and_for_programs():
    tasks = json.loads(robot_rl("tasks", "--json").stdout)
    assert [task["name"] for task in tasks] == [
        "belt",
        "cable_clip",
        "cube_lift",
        "handover",
        "pan_flip",
        "pan_flip_wrench",
        "peg_hard",
        "peg_insert",
        "ram_insert",
        "reach",
        "relocate",
        "relocate_back",
        "relocate_forward",
        "usb_pick_insert",
        "whip",
    ]
    lines = robot_rl("tasks").stdout.splitlines()
    expected = [[task["name"], task["instruction"]] for task in tasks]
    assert [line.split(maxsplit=1) for line in lines[: len(tasks)]] == expected
    assert len({line.index(text) for line, (_, text) in zip(lines, expected, strict=False)}) == 1  # in one column
    assert [line.split()[0] for line in lines[len(tasks) :]] == ["dm_control:...", "gym:...", "metaworld:..."]

    settings = json.loads(robot_rl("train", "--list-settings", "--json").stdout)
    assert [row["key"] for row in settings] == [known.key for known in list_keys()]
    assert "sac.discount = " in robot_rl("train", "--list-settings").stdout


@pytest.mark.slow
def test_demonstrations_are_recorded_inspected_and_not_overwritten(tmp_path):
    store = tmp_path / "demos"
    done = robot_rl("demo", "reach", "--episodes", 2, "--seed", 7, "--out", store, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["episodes"], answer["success_rate"]) == (0, 2, 1.0)

    facts = json.loads(robot_rl("inspect", store, "--json").stdout)
    assert (facts["task"], facts["seed"], facts["episodes"], facts["successes"]) == ("reach", 7, 2, 2)
    assert facts["steps_by_source"] == {"policy": 0, "human": 0, "script": facts["steps"], "hold": 0}

    before = snapshot(store)
    again = robot_rl("demo", "reach", "--episodes", 2, "--out", store)
    assert (again.returncode, again.stdout) == (1, "")
    assert "already holds an episode store" in again.stderr
    assert {**snapshot(store), "writer.lock": b""} == {**before, "writer.lock": b""}

    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter.tex").write_text("years of work")
    assert robot_rl("demo", "reach", "--out", thesis).returncode == 1
    assert snapshot(thesis) == {"chapter.tex": b"years of work"}


def test_a_run_leaves_its_files_and_answers_in_json_alone(finished):
    path, done = finished
    assert json.loads(done.stdout) == json.loads((path / "summary.json").read_text())
    assert "train reach: 120/120 steps (100%)" in done.stderr
    names = {entry.name for entry in path.iterdir()}
    expected = {"summary.json", "config.yaml", "checkpoint.pt", "episodes", "metrics.jsonl", "learning_curve.png"}
    assert names >= expected | {"tensorboard", "provenance.json"}


@pytest.mark.slow
def test_inspect_tells_how_far_a_run_is_even_with_a_broken_checkpoint(copy):
    facts = json.loads(robot_rl("inspect", copy, "--json").stdout)
    assert (facts["kind"], facts["task"], facts["finished"], facts["env_steps"]) == ("run", "reach", True, 120)
    assert (facts["checkpoint"]["env_steps"], facts["checkpoint"]["updates"]) == (120, 200)
    assert facts["store"]["steps_by_source"]["script"] > 0
    assert "success_rate: 0" in robot_rl("inspect", copy).stdout

    (copy / "summary.json").unlink()
    (copy / "checkpoint.pt").write_bytes(b"robot")
    facts = json.loads(robot_rl("inspect", copy, "--json").stdout)
    assert not facts["finished"]
    assert "cut short" in facts["checkpoint"]["error"]


# --------------------------------------------------------------- run directories


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["peg_insert"], "is a run of task 'reach', not of 'peg_insert'"),
        (["--seed", "5"], "started with other settings of seed"),
        (["--set", "sac.discount=0.5", "--set", "demonstrations=3"], "other settings of demonstrations, sac"),
        (["--steps", "100"], "has taken 120 env steps already, more than the 100 requested"),
    ],
)
def test_a_run_is_not_resumed_as_another(arguments, message, copy):
    before = {key: value for key, value in snapshot(copy).items() if key not in ("provenance.json", "lock")}
    done = robot_rl("train", "--resume", "--out", copy, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr
    assert {key: value for key, value in snapshot(copy).items() if key in before} == before


@pytest.mark.slow
def test_a_run_of_another_schema_is_not_resumed(copy):
    facts = json.loads((copy / "provenance.json").read_text())
    (copy / "provenance.json").write_text(json.dumps({**facts, "schema_version": 99}))
    done = robot_rl("train", "--resume", "--out", copy)
    assert done.returncode == 1
    assert "was written with schema_version 99" in done.stderr


def test_a_directory_that_is_not_free_is_refused(copy, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    for path, message in (
        (copy, "already holds a run; add --resume"),
        (tmp_path / "thesis", "is not empty (chapter.tex)"),
        (tmp_path / "file", "a file is in the way"),
    ):
        done = robot_rl("train", "reach", "--out", path, *SMALL)
        assert (done.returncode, done.stdout) == (1, "")
        assert message in done.stderr
    assert snapshot(tmp_path / "thesis") == {"chapter.tex": b"years of work"}


@pytest.mark.slow
def test_a_run_in_use_by_another_process_is_refused(copy):
    with RunDirectory.resume(copy):
        done = robot_rl("train", "--resume", "--out", copy)
        assert done.returncode == 1
        assert re.search(r"is in use by process \d+; wait until it ends, stop it", done.stderr)


@pytest.mark.slow
def test_a_finished_run_can_be_extended_and_keeps_the_extension(copy):
    done = robot_rl("train", "--resume", "--out", copy, "--steps", 150, "--json")
    summary = json.loads(done.stdout)
    assert (summary["env_steps"], summary["updates"], summary["utd"]) == (150, 260, 2.0)
    assert RunDirectory.read_config(copy).env_steps == 150


@pytest.mark.slow
def test_a_checkpoint_cut_short_names_the_one_before_it_which_leads_to_the_same_result(finished, copy):
    path, _ = finished
    checkpoint = copy / "checkpoint.pt"
    checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])
    done = robot_rl("train", "--resume", "--out", copy)
    assert done.returncode == 1
    assert f"cut short: {checkpoint.stat().st_size} of" in done.stderr
    assert f"rename {checkpoint}.previous to {checkpoint}" in done.stderr

    (copy / "checkpoint.pt.previous").rename(checkpoint)
    done = robot_rl("train", "--resume", "--out", copy)
    assert done.returncode == 0, done.stderr
    assert "set aside and are played again" in done.stderr
    assert same(learned(copy), learned(path))
