"""Results on disk: what was written is read; anything else is refused with the cure."""

import dataclasses

import numpy as np
import pytest
import yaml
from synthetic import FISHEYE, PINHOLE

from calibration.result import (
    CameraIntrinsics,
    HandEye,
    Quality,
    TimeOffset,
    ToolWrench,
    load_intrinsics,
    load_result,
    read_camera_info,
    save_result,
    write_camera_info,
)
from robot_rl.errors import CalibrationError

GOOD = Quality(True, "good", {"rms_px": 0.1}, {"a.png": "shows no board"})
EYE = tuple(map(tuple, np.eye(6).tolist()))
RESULTS = [
    PINHOLE,
    HandEye("fr3", "eye_in_hand", (0.1, 0.2, 0.3), (1.0, 0.0, 0.0, 0.0), EYE, PINHOLE, FISHEYE.fingerprint, 1e-4, 1e-3),
    TimeOffset("fr3", "wrist", 0.031, 0.001),
    ToolWrench("fr3", (1.0, 2, 3, 0.1, 0.2, 0.3), 0.7, (0.0, 0.01, 0.05), tuple(map(tuple, np.eye(10).tolist()))),
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_what_is_written_is_read(result, tmp_path):
    save_result(result, GOOD, tmp_path / "a.yaml")
    assert load_result(tmp_path / "a.yaml", type(result)) == (result, GOOD)
    other = next(kind for kind in map(type, RESULTS) if kind is not type(result))
    with pytest.raises(CalibrationError, match="robot-rl calibrate"):
        load_result(tmp_path / "a.yaml", other)


def test_a_bad_result_is_never_written(tmp_path):
    path = tmp_path / "a.yaml"
    save_result(PINHOLE, GOOD, path)
    before = path.read_bytes()
    with pytest.raises(CalibrationError, match="add views"):
        save_result(FISHEYE, Quality(False, "add views"), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "no calibration result"),
        ({"version": 99}, "version 99, this program reads 2"),
        ({"result": {}}, "damaged"),
        ({"result": {"fx": float("nan")}}, "fx"),
        ({"result": {"distortion": [0.0]}}, "coefficients"),
        ({"result": {"zoom": 1}}, "zoom"),
    ],
)
def test_a_damaged_file_is_refused(change, message, tmp_path):
    save_result(PINHOLE, GOOD, tmp_path / "a.yaml")
    content = yaml.safe_load((tmp_path / "a.yaml").read_text())
    result = {**content["result"], **change.pop("result")} if change.get("result") else change.pop("result", None)
    content |= change | ({"result": result} if result is not None else {})
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(CalibrationError, match=message):
        load_result(tmp_path / "a.yaml", CameraIntrinsics)


@pytest.mark.parametrize("text", [None, "", "- 1", "a: [", b"\xff\xfe\x00"])
def test_what_is_no_result_is_refused(text, tmp_path):
    path = tmp_path / "a.yaml"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CalibrationError, match=r"a\.yaml"):
        load_result(path, CameraIntrinsics)


@pytest.mark.parametrize("camera", [PINHOLE, FISHEYE], ids=lambda camera: camera.model)
def test_camera_info_goes_out_and_in(camera, tmp_path):
    write_camera_info(camera, tmp_path / "info.yaml")
    assert read_camera_info(tmp_path / "info.yaml") == dataclasses.replace(camera, covariance=(), rms=0.0)
    assert load_intrinsics(tmp_path / "info.yaml", camera="wrist").fingerprint == camera.fingerprint
    with pytest.raises(CalibrationError, match="not of 'front'"):
        load_intrinsics(tmp_path / "info.yaml", camera="front")


def test_a_camera_info_of_ros_is_read(tmp_path):
    # As camera_calibration writes it: plumb_bob with five numbers, integers where they are whole.
    (tmp_path / "info.yaml").write_text(
        "image_width: 640\nimage_height: 480\ncamera_name: narrow_stereo\n"
        "camera_matrix:\n  rows: 3\n  cols: 3\n  data: [438.8, 0, 305.6, 0, 437.3, 243.7, 0, 0, 1]\n"
        "distortion_model: plumb_bob\ndistortion_coefficients:\n  rows: 1\n  cols: 5\n"
        "  data: [-0.361976, 0.11051, 0.001014, 0.000505, 0]\n"
    )
    camera = read_camera_info(tmp_path / "info.yaml")
    assert (camera.camera, camera.fy, camera.distortion[0]) == ("narrow_stereo", 437.3, -0.361976)


def test_another_camera_resolution_or_robot_is_refused():
    with pytest.raises(CalibrationError, match="intrinsics of camera 'wrist', not of 'front'"):
        PINHOLE.require(camera="front")
    with pytest.raises(CalibrationError, match="640 x 480 px, the images have 1280 x 720"):
        PINHOLE.require(size=(1280, 720))
    hand_eye = RESULTS[1]
    hand_eye.require(robot="fr3", camera="wrist", size=(640, 480))
    for wrong in ({"robot": "ur5"}, {"camera": "front"}):
        with pytest.raises(CalibrationError, match="robot-rl calibrate hand-eye"):
            hand_eye.require(**wrong)
    with pytest.raises(CalibrationError, match="640 x 480 px, the images have 1280 x 720"):
        hand_eye.require(size=(1280, 720))


def test_a_hand_eye_result_has_the_lens_that_belongs_to_it(tmp_path):
    hand_eye = RESULTS[1]
    save_result(hand_eye, GOOD, tmp_path / "hand_eye.yaml")
    assert load_intrinsics(tmp_path / "hand_eye.yaml", camera="wrist") == hand_eye.intrinsics
