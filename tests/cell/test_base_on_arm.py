"""`robot-rl base` for the task of a robot file, on an arm in memory that judges by itself."""

import json

import pytest
from judged_arm import practised_arm
from running import robot_rl

pytestmark = [pytest.mark.slow, pytest.mark.wall_clock]

FEW = ("--set", "base.updates=60", "--set", "replay.batch_size=16")


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    """The flag of an arm; beside its file are demonstrations, and a base that learned from them."""
    folder = tmp_path_factory.mktemp("arm")

    def alone(content):
        content["cell"]["scene"] = "none"
        content["task"]["cameras"], content["cameras"] = ["wrist"], {"wrist": {"source": "pattern:"}}

    practised_arm(folder, alone)
    robot = ("--robot", str(folder / "robot.yaml"))
    recorded = robot_rl("demo", "there", *robot, "--episodes", 2, "--out", folder / "demos")
    assert recorded.returncode == 0, recorded.stderr
    train = ("base", "train", "there", *robot, "--demos", folder / "demos", "--out", folder / "base.pt", *FEW)
    trained = robot_rl(*train)
    assert trained.returncode == 0, trained.stderr
    return folder, robot


def test_a_base_of_its_task_is_trained_and_played_there(arm):
    folder, robot = arm
    base = f"chunk:{folder / 'base.pt'}"
    played = robot_rl("base", "eval", "there", *robot, "--base", base, "--episodes", 1, "--json")
    assert played.returncode == 0, played.stderr
    answer = json.loads(played.stdout)
    assert (answer["task"], answer["name"], answer["episodes"]) == ("there", base, 1)


def test_nothing_moves_for_what_an_arm_has_not(arm):
    folder, robot = arm
    refused = {
        ("there", *robot, "--base", "scripted", "--video", folder / "x.mp4"): "a film shows a simulation",
        ("there", *robot, "--base", f"chunk:{folder / 'gone.pt'}"): "no file",
        ("there", "--base", "scripted"): "unknown task 'there'",
        ("reach", "--base", "scripted", "--console"): "--console and --teleop need --robot FILE",
    }
    for call, said in refused.items():
        answer = robot_rl("base", "eval", *call)
        assert answer.returncode in (1, 2) and said in answer.stderr
        assert "episodes/s" not in answer.stderr
