"""The commands on the file of a robot, as users call them."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lab_arm import install_lab_arm
from running import listen_to_ctrl_c

ROBOT = """
arm: {driver: standing, desk_password: secret1}
limits: {box_low: [0.4, -0.1, 0.15], box_high: [0.6, 0.1, 0.35]}
cameras: {wrist: {source: "file:nowhere"}}
"""
ROBOT_RL = Path(sys.executable).with_name("robot-rl")


@pytest.fixture
def lab(tmp_path):
    environment = install_lab_arm(tmp_path)
    (tmp_path / "robot.yaml").write_text(ROBOT, encoding="utf-8")

    def call(*arguments, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        command = [str(ROBOT_RL), *arguments]
        return subprocess.Popen(
            command, cwd=tmp_path, env=environment, text=True, preexec_fn=listen_to_ctrl_c, **options
        )

    return tmp_path, call


def test_without_move_nothing_is_connected(lab):
    _, call = lab
    process = call("commission", "robot.yaml")
    out, err = process.communicate()
    assert out.splitlines()[-1] == "nothing moves without --move" and err == "" and process.returncode == 0


def test_a_wrong_file_is_named_before_anything_moves(lab):
    folder, call = lab
    process = call("commission", "missing.yaml")
    assert "missing.yaml" in process.communicate()[1] and process.returncode == 1
    (folder / "robot.yaml").write_text(ROBOT.replace("standing", "sitting"), encoding="utf-8")
    process = call("commission", "robot.yaml")
    assert "unknown driver 'sitting'" in process.communicate()[1] and process.returncode == 1


def test_a_wrong_trial_and_a_missing_person_are_named(lab):
    _, call = lab
    process = call("commission", "robot.yaml", "--only", "dance", "--move")
    assert "no trial is called dance; valid: hold, axes" in process.communicate()[1] and process.returncode == 1
    process = call("commission", "robot.yaml", "--only", "stop", "--move")
    assert "a person has to consent" in process.communicate()[1] and process.returncode == 1


def test_a_refused_trial_is_left_out_and_a_report_is_kept(lab):
    folder, call = lab
    process = call("commission", "robot.yaml", "--move", "--json", stdin=subprocess.PIPE)
    out, _ = process.communicate("n\n" * 7)
    answer = json.loads(out)
    assert process.returncode == 0 and answer["notes"] == 7
    (report,) = folder.glob("commissioning/robot-*/report.json")
    assert str(report.parent) == str(folder / answer["report"])


def test_ctrl_c_stops_the_arm_and_ends(lab):
    _, call = lab
    process = call("commission", "robot.yaml", "--only", "hold", "--move", stdin=subprocess.PIPE)
    process.stdin.write("y\n")
    process.stdin.flush()
    line = ""
    while "next: the arm holds" not in line:
        line = process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and "Traceback" not in err


STANDIN = """
arm: {driver: standin}
limits: {box_low: [0.4, -0.1, 0.1], box_high: [0.5, 0.1, 0.3], max_speed: 0.2}
"""


@pytest.mark.slow
@pytest.mark.wall_clock
def test_bench_arm_measures_how_the_arm_follows_and_which_interpolation_is_best(lab):
    folder, call = lab
    (folder / "robot.yaml").write_text(STANDIN, encoding="utf-8")
    command = ("bench", "arm", "robot.yaml", "--out", "bench", "--axes", "z", "--repeats", "1")
    out, err = call(*command).communicate()
    assert (out, err) == (
        "",
        "robot-rl: the tool steps by 1 cm along z; give --move if it has 3 cm of room on all sides\n",
    )
    process = call(*command, "--move", "--json", stdin=subprocess.PIPE)
    out, err = process.communicate("y\n")
    assert process.returncode == 0, err
    found = json.loads((folder / "bench" / "arm.json").read_text(encoding="utf-8"))
    assert found == json.loads(out) and found["driver"] == "standin" and found["steps"] == {"z": 2}
    assert 10 < found["axes"]["z"]["lag_ms"]["median"] < 300  # its time constant, and what a busy machine adds
    assert found["axes"]["z"]["steady_error_mm"]["median"] < 0.3
    assert set(found["interpolation"]) == {"none", "linear", "minimum_jerk"}
    assert found["interpolation"]["none"]["made"]["median"] > found["interpolation"]["linear"]["made"]["median"] > 0.4
    assert found["best_interpolation"] in found["interpolation"]
    assert (folder / "bench" / "arm.png").read_bytes().startswith(b"\x89PNG")


def test_the_doctor_examines_the_arm_of_a_file(lab):
    folder, call = lab
    process = call("doctor", "robot.yaml", "--seconds", "2", "--json", "--html", "page.html")
    out, _ = process.communicate()
    results = {result["name"]: result for result in json.loads(out)["results"]}
    assert results["arm faults"]["severity"] == "ok" and results["arm firmware"]["severity"] == "ok"
    assert results["camera wrist"]["severity"] == "fault" and process.returncode == 1
    assert "secret1" not in out + (folder / "page.html").read_text(encoding="utf-8")


def test_a_missing_file_is_named_at_once(lab):
    _, call = lab
    process = call("doctor", "missing.yaml", "--json")
    out, err = process.communicate()
    assert (out, process.returncode) == ("", 1) and err.count("\n") == 1
    assert err.startswith("robot-rl: cannot read robot file missing.yaml: No such file")


def test_a_wrong_file_is_one_fault_among_the_results_of_the_machine(lab):
    folder, call = lab
    (folder / "robot.yaml").write_text("arm: {driver: standng}\n", encoding="utf-8")
    out, _ = call("doctor", "robot.yaml").communicate()
    assert out.startswith("fault  robot file: unknown driver 'standng'; valid: ") and "disk speed" in out
