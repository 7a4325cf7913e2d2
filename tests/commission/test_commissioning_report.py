"""The report of a commissioning is kept beside the robot's file, and found again."""

import json

import numpy as np
import pytest

from robot_rl.commission.motion.trace import Trace
from robot_rl.commission.motion.trial import TrialOutcome
from robot_rl.commission.report import write_report
from robot_rl.doctor.contract.result import CheckResult
from robot_rl.errors import DataError
from robot_rl.run.directory.commissioning import newest_report


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text("arm: {}\n", encoding="utf-8")
    return path


def outcome(severity="ok"):
    seconds, points = np.arange(3.0), np.arange(9.0).reshape(3, 3)
    trace = Trace(seconds, points, points, points, np.full((3, 3), np.nan), seconds)
    return TrialOutcome([CheckResult("hold", severity, "it holds", 0.2, "mm")], {"axis x": trace})


def test_the_newest_report_is_found_with_its_verdict(robot):
    assert newest_report(robot) is None
    folder = write_report(outcome("fault"), robot)
    facts = newest_report(robot)
    assert facts["verdict"] == "fault" and facts["same_robot_file"] and facts["path"] == str(folder / "report.json")
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert report["traces"]["axis x"]["position_m"][1] == [3.0, 4.0, 5.0]
    assert report["traces"]["axis x"]["force_n"][0] == [None] * 3
    assert "data:image/png;base64" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_changed_robot_file_is_noticed(robot):
    write_report(outcome(), robot)
    robot.write_text("arm: {driver: other}\n", encoding="utf-8")
    assert newest_report(robot)["same_robot_file"] is False


def test_a_damaged_report_is_named(robot):
    folder = write_report(outcome(), robot)
    (folder / "report.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="commission again"):
        newest_report(robot)
