"""A deployment on a robot names the newest commissioning of its file, and warns where it says nothing good."""

import pytest
from lab_arm import install_lab_arm
from standing_arm import StandingArmConfig

from robot_rl.cell.robot_file import read_robot_file
from robot_rl.cell.robot_place import robot_deployment
from robot_rl.cell.robot_workcell import RobotWorkcell
from robot_rl.cli.main import main
from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.commission.report import write_report
from robot_rl.config.load import load_config
from robot_rl.doctor.contract.result import CheckResult
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import UnknownNameError
from robot_rl.init.plan import RobotPlan, first_day, robot_file_text
from robot_rl.run.directory.run_directory import RunDirectory


@pytest.fixture
def robot(tmp_path, monkeypatch):
    install_lab_arm(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    box = ((0.4, -0.1, 0.1), (0.6, 0.1, 0.4))
    plan = RobotPlan("standing", StandingArmConfig, {}, *box, {"wrist": "file:x"}, (), "plug", "plug it in", False)
    path = tmp_path / "robot.yaml"
    path.write_text(robot_file_text(plan, "robot.yaml"), encoding="utf-8")
    return path, plan


def facts(path, caplog):
    caplog.clear()
    found = robot_deployment(read_robot_file(path, "plug")).facts
    return found["commissioning"], caplog.text


def test_the_file_of_init_is_one_that_runs_read(robot):
    path, plan = robot
    read = read_robot_file(path, "plug")
    assert read.task.cameras == ("wrist",) and read.task.instruction == "plug it in"
    commands = first_day(plan, "robot.yaml")
    assert all("--robot" in command for command in commands[3:])
    assert all("--obs pixels" in command for command in commands[3:5])


def test_a_camera_that_the_robot_does_not_have_is_named_before_anything_is_opened(robot):
    path, _ = robot
    cell = RobotWorkcell(read_robot_file(path, "plug"))
    with pytest.raises(UnknownNameError, match=r"unknown camera 'front'; valid: wrist; encoder.cameras chooses"):
        cell("plug", WorkcellOptions(cameras=("front", "wrist")))


def test_the_newest_commissioning_is_named_with_its_verdict(robot, caplog):
    path, _ = robot
    commissioning, warned = facts(path, caplog)
    assert commissioning is None and "was not commissioned" in warned
    folder = write_report(TrialOutcome([CheckResult("hold", "ok", "it holds")]), path)
    commissioning, warned = facts(path, caplog)
    assert commissioning["path"] == str(folder / "report.json") and commissioning["verdict"] == "ok" and warned == ""
    path.write_text(path.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    assert "has changed since it was commissioned" in facts(path, caplog)[1]


def test_a_fault_is_a_warning_at_every_start(robot, caplog):
    path, _ = robot
    write_report(TrialOutcome([CheckResult("hold", "fault", "it sinks")]), path)
    assert "found a fault" in facts(path, caplog)[1]


def test_a_run_of_an_arm_goes_on_with_the_arm(robot, tmp_path, capsys):
    path, _ = robot
    run = RunDirectory.create(tmp_path / "run", load_config(None, ["task=reach"]), facts={"robot_file": str(path)})
    run.close()
    for words in (["eval", str(run.path)], ["train", "--resume", "--out", str(run.path)]):
        assert main(words) == 1
        assert f"was trained on the arm of {path}; add --robot {path}" in capsys.readouterr().err
