"""`robot-rl calibrate`, as a user goes through it, on pictures of the simulated arm."""

import json
import shutil

import cv2
import numpy as np
import pytest
from rigs import make_rig, planned, random_truth, record
from synthetic import BOARD, PINHOLE, apart

from calibration.result import CameraIntrinsics, HandEye, load_intrinsics, load_result
from robot_rl.cli.main import main

COUNT = 16


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Recorded pictures, and where the camera really is."""
    truth = random_truth(0, "eye_in_hand")
    rig = make_rig(truth)
    folder = tmp_path_factory.mktemp("calibration") / "session"
    record(rig, planned(rig, truth, COUNT), folder)
    rig.close()
    return folder, truth


def calibrate(*arguments):
    return main(["calibrate", *map(str, arguments)])


@pytest.mark.slow
def test_pictures_become_intrinsics_and_hand_eye(session, tmp_path, capsys):
    folder, truth = session
    intrinsics, hand_eye, info = tmp_path / "wrist.yaml", tmp_path / "hand_eye.yaml", tmp_path / "new/info.yaml"
    assert (
        calibrate(
            "intrinsics", folder, "--board", BOARD, "--camera", "wrist", "--out", intrinsics, "--camera-info", info
        )
        == 0
    )
    shown = capsys.readouterr()
    assert "good: focal length known to" in shown.out
    assert f"[{COUNT}/{COUNT}] view_{COUNT - 1:02d}.png: view" in shown.err
    assert "next: " in shown.err
    camera, _ = load_result(intrinsics, CameraIntrinsics)
    assert camera.fx == pytest.approx(PINHOLE.fx, rel=0.002)
    assert camera.fy == pytest.approx(PINHOLE.fy, rel=0.002)
    assert np.abs(camera.vector[2:4] - PINHOLE.vector[2:4]).max() < 1.5
    assert load_intrinsics(info).fingerprint == camera.fingerprint

    assert calibrate(
        "hand-eye", folder, "--board", BOARD, "--intrinsics", intrinsics, "--mounting", "eye-in-hand", "--robot", "fr3",
        "--out", hand_eye, "--json",
    ) == 0  # fmt: skip
    answer = json.loads(capsys.readouterr().out)
    assert answer["quality"]["good"]
    result, quality = load_result(hand_eye, HandEye)
    result.require(robot="fr3", camera="wrist", size=(640, 480))
    assert result.calibrated_from == camera.fingerprint
    assert np.abs(result.intrinsics.vector - camera.vector)[:4].max() < 4 * camera.sigma[:4].max()
    position, rotation = apart(truth.X, result.T_parent_camera)
    assert position < 0.5e-3
    assert np.degrees(rotation) < 0.1
    assert answer["quality"]["figures"] == pytest.approx(quality.figures)
    for page, pictures in ((tmp_path / "wrist.html", 2), (tmp_path / "hand_eye.html", 3)):
        text = page.read_text()
        assert text.count("data:image/png;base64,") == pictures
        assert "good: " in text
    assert "The lens that belongs to it" in (tmp_path / "hand_eye.html").read_text()


def test_a_calibration_that_cannot_be_trusted_leaves_a_report_and_no_result(session, tmp_path, capsys):
    folder, _ = session
    few = tmp_path / "few"
    few.mkdir()
    picture = folder / "view_03.png"
    for i in range(8):
        shutil.copy(picture, few / f"{i}.png")
    out = tmp_path / "wrist.yaml"
    assert calibrate("intrinsics", few, "--board", BOARD, "--camera", "wrist", "--out", out) == 1
    assert "views are alike" in capsys.readouterr().out
    assert not out.exists()
    assert "views are alike" in (tmp_path / "wrist.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["intrinsics", "nowhere", "--board", BOARD, "--camera", "c", "--out", "a.yaml"], "no such file or folder"),
        (["intrinsics", ".", "--board", BOARD, "--camera", "c", "--out", "a.yaml"], "no pictures"),
        (["intrinsics", ".", "--board", "chess", "--camera", "c", "--out", "a.yaml"], "e.g. charuco:11x8:20mm:15mm"),
        (["board", "--board", "charuco:20x20:20mm:15mm", "--out", "a.pdf"], "larger page"),
        (["hand-eye", ".", "--board", BOARD, "--intrinsics", "i.yaml", "--mounting", "eye-in-hand", "--robot", "r",
          "--out", "a.yaml"], "i.yaml: no such file"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert calibrate(*arguments) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def bad_tables(good):
    lines = good.splitlines()
    return {
        "lacks the columns qz": good.replace("qz", "foo"),
        "line 3: x is 'far', must be a finite number": "\n".join(
            [*lines[:2], "view_01.png,far,0,0,1,0,0,0", *lines[3:]]
        ),
        "has length 2.0000, must be 1": "\n".join([*lines[:2], "view_01.png,0,0,0,2,0,0,0", *lines[3:]]),
        "view_00.png appears twice": "\n".join([*lines, lines[1]]),
        "only in one of them: view_00.png": "\n".join([lines[0], *lines[2:]]),
    }


@pytest.mark.slow
def test_a_bad_table_of_poses_is_refused(session, tmp_path, capsys):
    folder, _ = session
    save = tmp_path / "info.yaml"
    from calibration.result import write_camera_info

    write_camera_info(PINHOLE, save)
    for message, text in bad_tables((folder / "poses.csv").read_text()).items():
        table = tmp_path / "poses.csv"
        table.write_text(text)
        assert calibrate(
            "hand-eye", folder, "--poses", table, "--board", BOARD, "--intrinsics", save, "--mounting", "eye-in-hand",
            "--robot", "r", "--out", tmp_path / "a.yaml",
        ) == 1  # fmt: skip
        assert message in capsys.readouterr().err
    assert not (tmp_path / "a.yaml").exists()


def test_pictures_of_another_resolution_and_damaged_ones_are_refused(session, tmp_path, capsys):
    folder, _ = session
    copy = tmp_path / "session"
    shutil.copytree(folder, copy)
    cv2.imwrite(str(copy / "view_00.png"), np.zeros((240, 320), np.uint8))
    from calibration.result import write_camera_info

    write_camera_info(PINHOLE, tmp_path / "info.yaml")
    command = ["hand-eye", copy, "--board", BOARD, "--intrinsics", tmp_path / "info.yaml", "--mounting", "eye-in-hand",
               "--robot", "r", "--out", tmp_path / "a.yaml"]  # fmt: skip
    assert calibrate(*command) == 1
    assert "are for 640 x 480 px, the images have 320 x 240 px" in capsys.readouterr().err
    (copy / "view_00.png").write_bytes(b"no picture")
    assert calibrate(*command) == 1
    assert "view_00.png: is no picture, or damaged" in capsys.readouterr().err


def test_a_board_is_printed(tmp_path, capsys):
    assert calibrate("board", "--out", tmp_path / "board.pdf") == 0
    assert "print it at 100 %" in capsys.readouterr().out
    assert (tmp_path / "board.pdf").read_bytes().startswith(b"%PDF")
