"""A practice alternates without resets, goes on where it stopped, and refuses tasks that do not meet."""

import json
import signal
from dataclasses import replace

import pytest
from running import robot_rl, start, wait_for

from robot_rl.cli.main import main
from robot_rl.config.load import load_config
from robot_rl.data.store.store import EpisodeStore
from robot_rl.env.registry import make_workcell
from robot_rl.errors import ConfigError, InterruptedRunError, RunDirectoryError
from robot_rl.practice.files import PracticeFiles, PracticePlan
from robot_rl.practice.meeting import check_tasks_meet
from robot_rl.practice.place import PracticePlace
from robot_rl.practice.practice import practice
from robot_rl.practice.stage import ContinuingTask
from robot_rl.run.deployment import Deployment

PAIR = ("relocate_forward", "relocate_back")
SKILLED = [
    "seed=100",
    "demonstrations=1",
    "base.kind=scripted",  # the operator's actions, uncorrected: almost every episode succeeds
    "warmup=base",
    "warmup_steps=100000",
    "sac.hidden_sizes=[16, 16]",
    "env_steps=450",
    "evaluation.curve_interval=0",
    "evaluation.video_episodes=0",
    "evaluation.episodes=1",
]


def configs_of(*tasks):
    return {task: load_config(None, [*SKILLED, f"task={task}"]) for task in tasks}


def ways_of(store):
    """Where the other bin lies at the start of each episode: its offset from the tool along y [m]."""
    return [float(store.read(name).observations["state/bin"][0][1]) for name in store.ids()]


def test_who_waits_for_a_person_at_the_start_of_an_episode_is_told_to_give_up():
    task = make_workcell("relocate_forward").task
    given_up = []
    task.give_up = lambda: given_up.append(True)
    ContinuingTask(task).give_up()
    assert given_up
    ContinuingTask(make_workcell("relocate_forward").task).give_up()


def test_an_environment_of_others_cannot_be_practised(tmp_path, capsys):
    path = tmp_path / "practice"
    assert main(["practice", "gym:Pendulum-v1", "--alone", "--out", str(path)]) == 1
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "gym:Pendulum-v1 cannot be practised: an environment of others begins each episode with a reset" in line
    assert not path.exists()


def test_tasks_alternate_in_one_scene_until_a_person_is_needed_and_go_on_after_a_resume(tmp_path):
    configs, path = configs_of(*PAIR), tmp_path / "practice"
    with pytest.raises(InterruptedRunError, match=r"no success in .* minutes of robot time.*--resume --out"):
        practice(configs, path, PracticePlan(PAIR, unattended=True, patience=0.0), resume=False)
    assert PracticeFiles(path).state().next == "relocate_forward"
    plan = replace(PracticeFiles.read_plan(path), patience=600.0)
    summary = practice(configs, path, plan, resume=True)
    rows = PracticeFiles(path).episodes()
    assert [row["task"] for row in rows if row["success"]][:4] == [*PAIR, *PAIR]
    assert summary["manual_resets"] == 0
    assert summary["env_steps"] == sum(row["steps"] for row in rows) >= 450
    assert summary["robot_minutes"] > summary["between_minutes"] > 0
    recorded = 0
    for task in PAIR:
        assert summary["tasks"][task]["person"]["takeovers"] == 0
        with EpisodeStore.open(path / task / "episodes") as store:
            recorded += len(store)
            assert {row.facts.task for row in store.summaries()} == {task}
            ways = ways_of(store)
        assert len({way > 0 for way in ways}) == 1  # each direction carries the cube one way
    assert recorded == len(rows) + 2
    assert (path / "practice.png").stat().st_size > 0
    with pytest.raises(RunDirectoryError, match="add --resume"):
        practice(configs, path, plan, resume=False)


def test_nothing_is_played_while_a_stop_is_latched_elsewhere_and_ctrl_c_ends_the_wait(tmp_path):
    configs = {task: replace(config, demonstrations=0) for task, config in configs_of(*PAIR).items()}
    looks = []

    def may_move():
        looks.append(True)
        if len(looks) == 5:
            signal.raise_signal(signal.SIGINT)
        return False

    place = PracticePlace(check=lambda configs: None, may_move=may_move)
    with pytest.raises(InterruptedRunError, match="stopped after 0 of 450 env steps, and saved"):
        practice(configs, tmp_path, PracticePlan(PAIR, unattended=True), resume=False, place=place)
    assert len(looks) == 5
    assert not PracticeFiles(tmp_path).episodes()


def test_tasks_whose_ends_do_not_meet_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match=r"does not end where it begins: .* the bin into which it belongs"):
        practice(configs_of("relocate_back"), tmp_path / "alone", PracticePlan(("relocate_back",)), resume=False)
    with pytest.raises(ConfigError, match=r"do not meet: after relocate_forward .* outside of the workspace"):
        check_tasks_meet(configs_of("relocate_forward", "cube_lift"), Deployment())
    with pytest.raises(ConfigError, match="reach cannot be practised"):
        check_tasks_meet(configs_of("reach"), Deployment())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["reach"], "reach has no reverse; name the task that leads back"),
        (["reach", "--reverse", "reach"], "no reverse of itself"),
        (["--resume"], "holds no practice to resume"),
        (["reach", "--set", "task=cube_lift"], "the tasks are not settings"),
        (["reach", "--unattended", "--console"], "--unattended has nobody there, --console and --teleop a person"),
        (["reach", "--tls"], "--tls needs --console or --teleop"),
        (["reach", "--teleop", "wheel"], "invalid choice: 'wheel'"),
        ([PAIR[0], "--steps", "0"], "nothing would be learned; set one of them"),
    ],
)
def test_bad_calls_are_refused_in_one_line(flags, complaint, tmp_path, capsys):
    try:
        assert main(["practice", *flags, "--out", str(tmp_path / "none")]) != 0
    except SystemExit as exit:
        assert exit.code != 0
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_after_kill_9_everything_recorded_is_kept_and_the_right_task_goes_on(tmp_path):
    path = tmp_path / "practice"
    settings = [flag for setting in SKILLED for flag in ("--set", setting)]
    process = start("practice", PAIR[0], *settings, "--steps", 150, "--unattended", "--out", path)
    back = path / "relocate_back" / "episodes" / "partial"
    wait_for(lambda: PracticeFiles(path).episodes() and list(back.glob("*.journal")), process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = PracticeFiles(path).episodes()
    done = robot_rl("practice", "--resume", "--out", path)
    assert done.returncode == 0, done.stderr
    rows = PracticeFiles(path).episodes()
    assert rows[: len(before)] == before
    assert rows[len(before)]["task"] == "relocate_back"
    summary = json.loads((path / "summary.json").read_text())
    assert summary["env_steps"] >= sum(row["steps"] for row in rows)  # those of the killed episode count too
