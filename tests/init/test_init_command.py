"""`robot-rl init` as users call it: with flags, with answers, interrupted, and a second time."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lab_arm import install_lab_arm
from running import listen_to_ctrl_c

from robot_rl.arm.robot_connection import read_connection
from robot_rl.cell.robot_file import read_robot_file
from robot_rl.config.yaml_file import parse_yaml

ROBOT_RL = Path(sys.executable).with_name("robot-rl")
FLAGS = ("--arm", "standing", "--no-questions", "--no-check")


@pytest.fixture
def lab(tmp_path, monkeypatch):
    environment = install_lab_arm(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "cell").mkdir()

    def call(*arguments, answers=""):
        command = [str(ROBOT_RL), "init", *arguments]
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(
            command, cwd=tmp_path / "cell", env=environment, preexec_fn=listen_to_ctrl_c, **options
        )
        if answers is None:
            return process
        out, err = process.communicate(answers)
        return process.returncode, out, err

    return tmp_path / "cell", call


def test_flags_alone_write_a_file_that_is_valid(lab):
    folder, call = lab
    camera = ("--camera", "wrist=file:frames")
    code, out, err = call(*FLAGS, "--setting", "rate=50", "--task", "plug", *camera, "--teleop", "console", "--json")
    assert code == 0, err
    robot = read_connection(folder / "robot.yaml")
    assert (robot.driver, robot.driver_config.rate, robot.driver_config.address) == ("standing", 50, "10.0.0.2")
    assert robot.cameras["wrist"].source == "file:frames"
    text = (folder / "robot.yaml").read_text(encoding="utf-8")
    assert '# desk_password: "" # For its web page.' in text
    tree = parse_yaml(text, "it")
    assert tree["task"]["cameras"] == ["wrist"] and tree["task"]["action_axes"] == ["x", "y", "z", "yaw"]
    commands = json.loads(out)["commands"]
    assert len(commands) == 6 and commands[0].startswith("robot-rl doctor robot.yaml")


def test_texts_are_read_from_the_file_as_they_were_given(lab):
    folder, call = lab
    told = "put the plug: red, #2, {upright}"
    flags = ("--instruction", told, "--setting", "address='0123'", "--camera", "wrist=file:my, frames #1")
    code, _, err = call(*FLAGS, *flags, "--task", "plug")
    assert code == 0, err
    robot = read_robot_file(folder / "robot.yaml", "plug")
    assert (robot.task.instruction, robot.cameras["wrist"].source) == (told, "file:my, frames #1")
    assert robot.connection.driver_config.address == "0123"


def test_where_the_arm_judges_itself_the_file_needs_no_editing(lab):
    folder, call = lab
    code, out, err = call(*FLAGS, "--judge", "goal", "--json")
    assert code == 0, err
    robot = read_robot_file(folder / "robot.yaml", "touch")
    assert (robot.cell.judge, robot.cell.scene, robot.task.action_axes) == ("goal", "none", ("x", "y", "z"))
    assert robot.task.start.pose.position.tolist() == [0.5, 0.0, 0.25], "where the arm stands"
    assert robot.connection.limits.box_low == (0.44, -0.06, 0.19)
    doctor, commission, train, evaluate = json.loads(out)["commands"]
    assert doctor.startswith("robot-rl doctor") and commission.startswith("robot-rl commission")
    assert "train touch --robot robot.yaml" in train and "eval runs/touch" in evaluate


def test_a_driver_that_no_robot_file_can_name_is_not_offered(lab):
    code, _, err = lab[1]("--arm", "crisp", "--no-questions", "--no-check")
    assert code == 1
    assert "'crisp' is none of: " in err and "standing" in err and "ur" in err


def test_it_never_overwrites(lab):
    folder, call = lab
    (folder / "robot.yaml").write_text("mine", encoding="utf-8")
    code, _, err = call(*FLAGS)
    assert code == 1 and "never overwritten" in err
    assert (folder / "robot.yaml").read_text(encoding="utf-8") == "mine"


def test_answers_make_the_same_file_as_flags(lab):
    folder, call = lab
    code, _, err = call(
        "--no-check", "--out", "asked.yaml", answers="standing\n10.0.0.9\n\n\n0 0 0\n1 1\n1 1 1\n\nplug\n\n\n"
    )
    assert code == 0, err
    assert "'1 1' are not three numbers" in err
    flags = ("--setting", "address=10.0.0.9", "--box-low", "0 0 0", "--box-high", "1 1 1", "--task", "plug")
    assert call(*FLAGS, *flags, "--out", "flags.yaml")[0] == 0
    asked, by_flags = ((folder / name).read_text(encoding="utf-8") for name in ("asked.yaml", "flags.yaml"))
    assert asked.replace("asked.yaml", "flags.yaml") == by_flags


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("--arm", "kuka"), "--arm: 'kuka' is none of"),
        (("--setting", "adress=1"), "did you mean 'address'"),
        (("--camera", "wrist"), "NAME=SOURCE"),
        (("--box-low", "1 1 1"), "has to be below"),
        (("--task", "My Task"), "is no name"),
        (("--judge", "goal", "--start", "none"), "--start: the goals lie around it"),
        (("--start", "there"), "'there' are not three numbers"),
        (("--start", "9 0 0.2", "--box-low", "0 0 0", "--box-high", "1 1 1"), "start (9 0 0.2) has to be in"),
        (("--box-low", "nan 0 0"), "'nan 0 0' are not three numbers"),
        (("--camera", "wrist=file:a", "--camera", "wrist=file:b"), "wrist is the name of another camera, file:a"),
        (("--camera", "on=file:a"), "cameras"),
    ],
)
def test_a_wrong_flag_is_named_and_nothing_is_written(lab, flags, named):
    folder, call = lab
    code, _, err = call(*FLAGS, *flags)
    assert code == 1 and named in err and not list(folder.iterdir())


def test_ctrl_c_and_the_end_of_the_input_leave_nothing(lab):
    folder, call = lab
    process = call("--no-check", answers=None)
    while "standing" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130  # with its input open: an end of it would be another reason
    assert "Traceback" not in process.communicate()[1] and not list(folder.iterdir())
    code, _, err = call("--no-check", answers="standing\n")
    assert code == 1 and "the input ended" in err and not list(folder.iterdir())
