"""`robot-rl calibrate time-offset` and `wrench`, from recorded tables and pictures."""

import csv
import dataclasses

import cv2
import numpy as np
import pytest
from motions import TRUTH, motion, readings
from synthetic import BOARD, PINHOLE

from calibration.camera.board_pose import board_pose
from calibration.result import Quality, TimeOffset, ToolWrench, load_result, save_result
from robot_rl.cli.main import main
from robot_rl.geometry import quat_from_matrix

FLAT = dataclasses.replace(PINHOLE, distortion=(0.0,) * 8)
"""A lens without distortion: a picture of a flat board is then a perspective image of its print."""
SCALE = 5000.0  # [px/m]


def picture(T_camera_board):
    """The printed board seen from there, a little blurred."""
    printed = cv2.copyMakeBorder(BOARD.image(SCALE), 20, 20, 20, 20, cv2.BORDER_CONSTANT, value=120)
    rim = BOARD.margin + 20 / SCALE
    to_board = np.array([[1 / SCALE, 0, 0.5 / SCALE - rim], [0, 1 / SCALE, 0.5 / SCALE - rim], [0, 0, 1]])
    R, t = T_camera_board.matrix, T_camera_board.position
    H = FLAT.matrix @ np.column_stack((R[:, 0], R[:, 1], t)) @ to_board
    seen = cv2.warpPerspective(printed, H, (640, 480), flags=cv2.INTER_AREA, borderValue=120)
    return cv2.GaussianBlur(seen, (0, 0), 0.8)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("motion")
    hand_eye, frames, trajectory = motion(0, "eye_in_hand", delay=0.025, rate=15.0, intrinsics=FLAT)
    save_result(hand_eye, Quality(True, "given"), folder / "hand_eye.yaml")
    with open(folder / "frames.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "stamp"])
        for i, frame in enumerate(frames):
            cv2.imwrite(str(folder / f"{i:03d}.png"), picture(board_pose(FLAT, frame.view)[0]))
            table.writerow([f"{i:03d}.png", frame.stamp])
    with open(folder / "trajectory.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["stamp", "x", "y", "z", "qw", "qx", "qy", "qz"])
        for stamp, T in zip(trajectory.stamps, trajectory.poses, strict=True):
            table.writerow([stamp, *T.position.tolist(), *T.quaternion.tolist()])
    return folder


def offset(folder, out):
    options = ["--board", BOARD, "--hand-eye", folder / "hand_eye.yaml"]
    return main([str(word) for word in ("calibrate", "time-offset", folder, *options, "--out", out)])


def test_the_delay_of_a_recording_is_found(recording, tmp_path, capsys):
    assert offset(recording, tmp_path / "delay.yaml") == 0
    shown = capsys.readouterr()
    assert "good: frames are" in shown.out
    assert "frames show the board" in shown.err
    result, _ = load_result(tmp_path / "delay.yaml", TimeOffset)
    result.require(robot="fr3", camera="wrist")
    assert abs(result.delay - 0.025) < 0.002
    assert "data:image/png" in (tmp_path / "delay.html").read_text()


@pytest.mark.parametrize(
    ("file", "row", "message"),
    [
        ("trajectory.csv", "1.5,0,0,0,1,0,0,0", "stamp is '1.5', must be whole nanoseconds"),
        ("trajectory.csv", "5,0,0,0,1,0,0,0", "do not rise"),
        ("trajectory.csv", "9000000000000000000,0,0,0,0.5,0,0,0", "quaternion"),
        ("frames.csv", "000.png,7", "000.png appears twice"),
        ("frames.csv", "missing.png,7", "missing.png: cannot be read"),
    ],
)
def test_a_bad_recording_is_refused(recording, tmp_path, capsys, file, row, message):
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in recording.iterdir():
        (folder / path.name).symlink_to(path)
    (folder / file).unlink()
    lines = (recording / file).read_text().splitlines()
    kept = lines if "trajectory" in file or "000.png" in row else lines[:1]
    (folder / file).write_text("\n".join([*kept, row]) + "\n")
    assert offset(folder, tmp_path / "delay.yaml") == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "delay.yaml").exists()


def write_wrenches(path, rotations, wrenches):
    with open(path, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["qw", "qx", "qy", "qz", "fx", "fy", "fz", "tx", "ty", "tz"])
        for R, wrench in zip(rotations, wrenches, strict=True):
            table.writerow([*quat_from_matrix(R).tolist(), *wrench.tolist()])


def test_a_table_of_readings_becomes_a_tool(tmp_path, capsys):
    rotations, wrenches = readings(0)
    wrenches[6, :3] += 4.0
    write_wrenches(tmp_path / "readings.csv", rotations, wrenches)
    out = tmp_path / "tool.yaml"
    assert main(["calibrate", "wrench", str(tmp_path / "readings.csv"), "--robot", "fr3", "--out", str(out)]) == 0
    assert "left out: row 7: contradicts the others" in capsys.readouterr().out
    result, _ = load_result(out, ToolWrench)
    assert result.mass == pytest.approx(TRUTH.mass, rel=0.01)
    assert "was the tool touched?" in (tmp_path / "tool.html").read_text()


def test_a_weighed_tool_reveals_a_wrong_gain(tmp_path, capsys):
    rotations, wrenches = readings(0)
    wrenches[:, :3] *= 1.05
    write_wrenches(tmp_path / "readings.csv", rotations, wrenches)
    out = tmp_path / "tool.yaml"
    command = ["calibrate", "wrench", str(tmp_path / "readings.csv"), "--robot", "fr3", "--out", str(out)]
    assert main([*command, "--mass", str(TRUTH.mass)]) == 1
    assert "the gain of the force is 1.0" in "".join(capsys.readouterr())
    assert not out.exists()
    assert main(command) == 0
    assert "weigh the tool, and give --mass" in capsys.readouterr().out


def test_a_table_that_says_nothing_of_the_tool_is_refused(tmp_path, capsys):
    write_wrenches(tmp_path / "readings.csv", *readings(0, tilt=0.01))
    out = tmp_path / "tool.yaml"
    command = ["calibrate", "wrench", str(tmp_path / "readings.csv"), "--robot", "fr3", "--out", str(out)]
    assert main(command) == 1
    assert "turned too little" in capsys.readouterr().err
    (tmp_path / "readings.csv").write_text("qw,qx\n1,0\n")
    assert main(command) == 1
    assert "lacks the columns" in capsys.readouterr().err
    assert not out.exists()
