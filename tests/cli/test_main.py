"""The command line, used as a user would: answers, help, and every way to get it wrong."""

import json
import re
import shutil
import subprocess
import sys

import pytest
import torch
from running import SMALL, environment, learned, robot_rl, same, snapshot

from robot_rl.cli.main import main
from robot_rl.config.describe import list_keys
from robot_rl.data.store.store import EpisodeStore
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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run; tests that would change it take a copy."""
    path = tmp_path_factory.mktemp("cli") / "run"
    done = robot_rl("train", "reach", "--json", "--out", path, *SMALL)
    assert done.returncode == 0, done.stderr
    return path, done


@pytest.fixture
def copy(finished, tmp_path):
    path, _ = finished
    return shutil.copytree(path, tmp_path / "copy")


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
def test_eval_repeats_the_result_of_the_run_and_does_not_touch_it(finished):
    path, trained = finished
    before = snapshot(path)
    done = robot_rl("eval", path, "--json")
    answer, summary = json.loads(done.stdout), json.loads(trained.stdout)
    assert done.returncode == 0
    kept = ("task", "episodes", "success_rate", "success_ci95", "return_mean", "force_peak_p95_n", "video")
    assert {key: answer[key] for key in kept} == {key: summary[key] for key in kept}
    assert len(answer["results"]) == 3
    assert snapshot(path) == before


@pytest.mark.slow
def test_eval_keeps_its_episodes_if_asked(finished, tmp_path):
    path, _ = finished
    done = robot_rl("eval", path, "--episodes", 2, "--record", tmp_path / "episodes", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(robot_rl("data", "ls", tmp_path / "episodes", "--json").stdout)
    results = json.loads(done.stdout)["results"]
    assert [row["episode_id"] for row in rows] == ["evaluation-0000", "evaluation-0001"]
    assert [(row["success"], row["steps"]) for row in rows] == [(one["success"], one["steps"]) for one in results]
    again = robot_rl("eval", path, "--episodes", 2, "--record", tmp_path / "episodes")
    assert (again.returncode, "already holds an episode store" in again.stderr) == (1, True)


@pytest.mark.slow
def test_eval_with_the_policys_noise(finished, capsys):
    path, answers = str(finished[0]), []
    for share in ("0", "1", "1"):
        assert main(["eval", path, "--episodes", "2", "--json", "--set", f"sac.deployed_noise={share}"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert [one["deployed_noise"] for one in answers] == [0.0, 1.0, 1.0]
    assert answers[1] == answers[2]
    assert answers[0]["results"] != answers[1]["results"]


@pytest.mark.slow
def test_eval_in_another_world_records_it(finished, tmp_path, capsys):
    path, file = str(finished[0]), tmp_path / "results" / "biased.json"
    world = ["--set", "world.wrench_bias=2", "--set", "simulation.command_delay=0.05"]
    assert main(["eval", path, "--episodes", "2", "--out", str(file), "--record", str(tmp_path / "store"), *world]) == 0
    said = capsys.readouterr().out
    assert said.startswith("in another world: simulation.command_delay=0.05, world.wrench_bias=2.0\n")
    result = json.loads(file.read_text())
    assert result["changes"] == {"simulation.command_delay": 0.05, "world.wrench_bias": 2.0}
    assert (result["world"]["task"], result["world"]["world"]["wrench_bias"], result["run"]) == ("reach", 2.0, path)
    with EpisodeStore.open(tmp_path / "store") as store:
        assert store.metadata["world"] == result["world"]
    assert main(["eval", path, "--episodes", "2", "--json"]) == 0
    own = json.loads(capsys.readouterr().out)
    assert own["changes"] == {}
    assert own["results"] != result["results"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            ("--task", "peg_insert"),
            "reach does not fit peg_insert: it observes state/target, which peg_insert does not",
        ),
        (("--task", "gym:Pendulum-v1"), "an action is 1 numbers there, not 3"),
        (("--task", "reech"), "did you mean 'reach'"),
        (("--set", "world.tilt=0.1"), "reach has no world.tilt; it has arm, wrench_bias"),
        (("--set", "sac.discount=0.5"), "is no setting of the world, and the policy stays as it is"),
        (("--set", "world.brightnes=2"), "did you mean 'world.brightness'"),
        (("--set", "sac.deployed_noise=2"), "sac.deployed_noise: 2 should be less than or equal to 1"),
    ],
)
def test_a_world_that_does_not_fit_is_refused_in_one_line(finished, capsys, call, expected):
    assert main(["eval", str(finished[0]), "--episodes", "1", *call]) == 1  # in this process, as it is one of many
    complaint = capsys.readouterr().err
    assert expected in complaint
    assert complaint.startswith("robot-rl: ")
    assert complaint.count("\n") == 1


def test_eval_below_the_rate_asked_for_exits_with_1(finished):
    path, _ = finished
    done = robot_rl("eval", path, "--episodes", 1, "--min-success", 1)
    assert done.returncode == 1
    assert "success 0.000 on 1 held-out resets of reach" in done.stdout
    assert "success 0.000 is below --min-success 1" in done.stderr


@pytest.mark.slow
def test_eval_films_from_the_cameras_asked_for(finished, tmp_path):
    path, _ = finished
    film = tmp_path / "films" / "front.mp4"
    done = robot_rl("eval", path, "--episodes", 1, "--video", film, "--camera", "front", "--json")
    if "cannot make an OpenGL context" in done.stderr:
        pytest.skip("this machine cannot render")
    assert (done.returncode, json.loads(done.stdout)["video"]) == (0, str(film)), done.stderr
    import av

    with av.open(str(film)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height) == (320, 272), "with the captions"
        assert stream.frames >= 40 + 10  # an episode, and a second for its last frame

    wrong = robot_rl("eval", path, "--video", tmp_path / "side.mp4", "--camera", "side")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "unknown camera 'side'; valid: front, wrist" in wrong.stderr


@pytest.mark.slow
def test_where_nothing_can_be_rendered_results_are_not_lost(copy, tmp_path):
    blind = environment(MUJOCO_GL="disable")
    film = tmp_path / "film.mp4"
    evaluated = robot_rl("eval", copy, "--episodes", 1, "--video", film, "--json", env=blind)
    answer = json.loads(evaluated.stdout)
    assert (evaluated.returncode, answer["episodes"], answer["video"]) == (1, 1, None)

    (copy / "summary.json").unlink()
    more = ("--set", "evaluation.video_episodes=1", "--episodes", 2)
    trained = robot_rl("train", "--resume", "--out", copy, *more, env=blind)
    summary = json.loads((copy / "summary.json").read_text())
    assert (trained.returncode, summary["episodes"], summary["video"]) == (0, 2, None)
    for done in (evaluated, trained):
        assert "warning: no video: cannot make an OpenGL context" in done.stderr
        assert "install libegl1" in done.stderr
    assert not film.exists()
    assert not (copy / "evaluation.mp4").exists()


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
