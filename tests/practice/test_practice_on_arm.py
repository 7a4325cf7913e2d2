"""Practice on an arm in this process: two directions in turn, each with its judge, and what goes wrong on the way."""

import itertools
import json
import signal

import cv2
import numpy as np
import pytest
from judged_arm import SKILLED, practised_arm
from model_server import ModelServer, reply
from running import one_thread, robot_rl, start, wait_for
from scenes import stamped_store

from robot_rl.cli.main import main
from robot_rl.config.load import load_config, load_run_config
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import ArmStoppedError, InterruptedRunError
from robot_rl.practice.arm_place import arm_place
from robot_rl.practice.files import PracticeFiles, PracticePlan
from robot_rl.practice.practice import practice

TASKS = ("there", "back")


def practised(file, path, *settings, patience=600.0, resume=False, call="", own=None):
    """Practise in this process, with learners in it."""
    with one_thread():
        if resume:
            configs = {task: load_run_config(PracticeFiles(path).settings(task), settings) for task in TASKS}
        else:
            every, own = [*SKILLED, *settings], own or {}
            configs = {task: load_config(None, [*every, *own.get(task, []), f"task={task}"]) for task in TASKS}
        place = arm_place(file, configs, {}, resume=resume)
        return practice(configs, path, PracticePlan(TASKS, True, patience), resume=resume, place=place, call=call)


@pytest.mark.parametrize(
    ("change", "flags", "named"),
    [
        (lambda c: (c.pop("reverse"), c["task"].pop("reverse")), (), "names no task that leads back from there"),
        (lambda c: None, ("--reverse", "elsewhere"), "the task that leads back is back, not elsewhere"),
        (lambda c: None, ("--own", "elsewhere:seed=1"), "that task is not practised; valid: there, back"),
        (lambda c: None, ("--own", "back"), "must be TASK:KEY=VALUE"),
        (lambda c: None, ("--own", "back:env_steps=3"), "env_steps is the same for all tasks"),
        (lambda c: None, ("--demos", "back=one", "--demos", "back=two"), "--demos names back twice"),
        (lambda c: None, ("--set", "evaluation.curve_interval=9"), "a practice makes no learning curve"),
        (
            lambda c: (c["reverse"].update(judge="person"), c["reverse"].pop("goal")),
            (),
            "nobody judges the episodes of back",
        ),
        (
            lambda c: None,
            ("--own", "back:reward.kind=preferences", "--own", "back:reward.path=x"),
            "back cannot be practised with reward.kind=preferences",
        ),
        (
            lambda c: (c["reverse"].update(judge="person"), c["reverse"].pop("goal")),
            ("--own", "back:reward.kind=classifier", "--own", "back:reward.path=x"),
            "record demonstrations first, `robot-rl demo back --robot",
        ),
        (lambda c: c["task"].pop("start"), (), "there has no start pose"),
        (lambda c: None, ("--steps", "0", "--set", "demonstrations=0"), "nothing would be learned; set one of them"),
        (
            lambda c: None,
            ("--set", "demonstrations=0", "--own", "back:warmup=base"),
            "warmup=base with base.kind=none: there is no base to act",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_made(tmp_path, capsys, change, flags, named):
    out = tmp_path / "practice"
    try:
        assert main(["practice", "there", "--robot", str(practised_arm(tmp_path, change)), *flags, "--out", str(out)])
    except SystemExit as exit:
        assert exit.code
    assert named in capsys.readouterr().err
    assert not out.exists()


def test_the_task_that_leads_back_cannot_begin(tmp_path, capsys):
    assert main(["practice", "back", "--robot", str(practised_arm(tmp_path)), "--out", str(tmp_path / "out")]) == 1
    assert "back is the task that leads back; begin with the one" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.wall_clock
def test_nobody_helps_where_no_policy_goes_on_and_whoever_resumes_has_made_the_scene_ready(tmp_path):
    def unreachable(content):
        content["goal"]["steps"] = content["reverse"]["goal"]["steps"] = 1000

    file, path, called = practised_arm(tmp_path, unreachable), tmp_path / "practice", tmp_path / "called"
    call = f"sh -c 'echo \"$0\" > {called}'"
    with pytest.raises(InterruptedRunError, match=r"waits for a person: no success .* make the scene ready for there"):
        practised(file, path, "env_steps=60", patience=1.0, call=call)
    assert "there needs a person: no success" in called.read_text()
    assert {row["success"] for row in PracticeFiles(path).episodes()} == {False}
    practised_arm(tmp_path)  # the goal can be reached again
    summary = practised(file, path, "env_steps=22", patience=1.0, resume=True)
    assert summary["manual_resets"] == 1
    for task in TASKS:
        assert summary["tasks"][task]["success_rate"] == 1.0
        assert summary["tasks"][task]["episodes"] == 1
        with EpisodeStore.open(path / task / "episodes") as store:
            assert {row.facts.task for row in store.summaries()} == {task}
    rows = PracticeFiles(path).episodes()
    turns = [row["task"] for row in rows if row["success"]]
    assert turns == [TASKS[number % 2] for number in range(len(turns))] and len(turns) >= 2


@pytest.mark.slow
@pytest.mark.wall_clock
def test_an_arm_that_has_stopped_ends_it_with_the_command_that_goes_on_and_a_call(tmp_path):
    file = practised_arm(tmp_path, lambda c: c["arm"].update(faults=["reflex@9"]))
    path, called = tmp_path / "practice", tmp_path / "called"
    with pytest.raises(ArmStoppedError) as caught:
        practised(file, path, "env_steps=1000", call=f"sh -c 'echo \"$0\" > {called}'")
    assert str(caught.value).count(f"continue with: robot-rl practice --robot {file} --resume --out {path}") == 1
    assert "has ended, and needs a person: the arm is stopped" in called.read_text()


@pytest.mark.slow
@pytest.mark.wall_clock
def test_after_kill_9_the_right_direction_goes_on_with_its_own_settings(tmp_path):
    file, path = practised_arm(tmp_path), tmp_path / "practice"
    flags = [flag for setting in SKILLED[:-3] for flag in ("--set", setting)]
    process = start(
        *("practice", "there", "--robot", file, *flags, "--own", "back:update_to_data=2", "--steps", "100"),
        *("--unattended", "--out", path),
    )
    back = path / "back" / "episodes" / "partial"
    wait_for(lambda: PracticeFiles(path).episodes() and list(back.glob("*.journal")), process, patience=180.0)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = PracticeFiles(path).episodes()
    steps = sum(row["steps"] for row in before)
    summary = practised(file, path, f"env_steps={steps + 6}", "evaluation.episodes=1", resume=True)
    rows = PracticeFiles(path).episodes()
    assert rows[: len(before)] == before
    assert rows[len(before)]["task"] == "back"
    settings = [summary["tasks"][task]["config"]["update_to_data"] for task in TASKS]
    assert settings == [1, 2]


@pytest.mark.slow
@pytest.mark.wall_clock
def test_labels_that_come_after_the_episode_decide_whose_turn_it_is_and_judge_the_evaluation(tmp_path):
    """A model that sees success in every other episode of the way back; there, the arm judges."""
    (tmp_path / "seen").mkdir()
    for number in range(1200):  # 40 s, as episodes with the frames of one before would have its label
        picture = np.random.default_rng(number).integers(0, 256, (64, 64, 3), np.uint8)
        cv2.imwrite(str(tmp_path / "seen" / f"{number:04d}.png"), picture)

    def labelled(content):
        content["cameras"] = {"front": {"source": f"file:{tmp_path / 'seen'}", "frozen_after": 0.0}}
        content["cell"]["max_camera_age"] = 1.0
        content["task"]["cameras"] = ["front"]
        content["reverse"] = {"judge": "person", "task": {**content["reverse"]["task"], "max_steps": 3}}

    def verdict(name):
        return reply(json.dumps({"seen": "bars", "verdict": name, "confidence": 90}))

    verdicts = itertools.cycle(["failure", "success"])
    with ModelServer(lambda request: verdict("success")) as server:
        tried = stamped_store(tmp_path / "tried", 2)
        flags = ("--set", "task=bring the tool back", "--set", "frames.count=2", "--set", "endpoint.concurrency=1")
        done = robot_rl("label", "run", tried, "--url", server.url, *flags)
        assert done.returncode == 0, done.stderr
        server.answer = lambda request: verdict(next(verdicts))
        own = {
            "back": ["reward.kind=labels", f"reward.path={tried}", "reward.allow_uncalibrated=true", "demonstrations=0",
                     "base.kind=none", "warmup=uniform", "evaluation.episodes=2"],
        }  # fmt: skip
        path = tmp_path / "practice"
        summary = practised(practised_arm(tmp_path, labelled), path, "env_steps=14", own=own)
    rows = [(row["task"], row["success"]) for row in PracticeFiles(path).episodes()]
    turns = [("there", True), ("back", False), ("back", True)]
    assert rows == [turns[number % 3] for number in range(len(rows))] and len(rows) >= 3
    back = summary["tasks"]["back"]
    assert back["success_rate"] == pytest.approx(0.5, abs=0.2) and back["labels"]["labels"] == "success"
    with EpisodeStore.open(path / "back" / "evaluation") as store:
        assert len(store) == back["episodes"] >= 2
