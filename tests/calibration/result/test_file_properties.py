"""Result files: every number survives the round trip, and a file that lies about any of them is refused."""

import copy
import dataclasses

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.result import (
    CameraIntrinsics,
    HandEye,
    Quality,
    SimulatedArm,
    TimeOffset,
    ToolWrench,
    load_intrinsics,
    load_result,
    read_camera_info,
    save_result,
    write_camera_info,
)
from calibration.result.lens import COEFFICIENTS
from robot_rl.config.components import SimulationConfig
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

seeds = st.integers(0, 10**6)


def covariance(rng, size):
    """A covariance of parameters whose units differ by orders of magnitude."""
    A = rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-6, 2, (size, 1))
    C = A @ A.T
    return tuple(map(tuple, ((C + C.T) / 2).tolist()))


def lens(rng):
    model = str(rng.choice(list(COEFFICIENTS)))
    k = tuple(rng.uniform(-0.5, 0.5, COEFFICIENTS[model]).tolist())
    focal, center = rng.uniform(100, 2000, 2).tolist(), rng.uniform(100, 900, 2).tolist()
    C = covariance(rng, 4 + len(k))
    return CameraIntrinsics("séries 8144", 640, 480, model, *focal, *center, k, C, float(rng.uniform(0, 2)))


def hand_eye(rng):
    pose = Pose.from_rotvec(rng.normal(size=3), rng.normal(size=3))
    mounting, noise = str(rng.choice(["eye_in_hand", "eye_to_hand"])), rng.uniform(0, 1e-3, 2).tolist()
    position, quaternion = tuple(pose.position.tolist()), tuple(pose.quaternion.tolist())
    return HandEye("fr3", mounting, position, quaternion, covariance(rng, 6), lens(rng), "0" * 12, *noise)


def wrench(rng):
    bias, center = tuple(rng.normal(size=6).tolist()), tuple(rng.normal(size=3).tolist())
    return ToolWrench("fr3", bias, float(rng.uniform(0.1, 5)), center, covariance(rng, 10))


def arm(rng):
    return SimulatedArm("fr3", SimulationConfig(*rng.uniform(0.1, 100, 7).tolist()), covariance(rng, 7))


def offset(rng):
    return TimeOffset("fr3", "wrist", float(rng.normal()), float(rng.uniform(0, 1e-2)))


MAKERS = {"intrinsics": lens, "hand_eye": hand_eye, "wrench": wrench, "sim": arm, "time_offset": offset}
made = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def quality(rng):
    figures = {f"figure_{i}": float(x) for i, x in enumerate(rng.normal(size=4) * 10.0 ** rng.uniform(-9, 9, 4))}
    return Quality(True, "good: 0.1 % [px], \"quoted\" and 'quoted': yes", figures, {"a: b.png": "left out #1"})


@made
@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_every_number_survives_the_round_trip(tmp_path_factory, make, seed):
    rng = np.random.default_rng(seed)
    result, good = make(rng), quality(rng)
    path = tmp_path_factory.mktemp("results") / "result.yaml"
    save_result(result, good, path)
    assert load_result(path, type(result)) == (result, good)
    text = path.read_bytes()
    save_result(*load_result(path, type(result)), path)
    made_at = b"made: "
    lines = [[line for line in t.splitlines() if not line.startswith(made_at)] for t in (text, path.read_bytes())]
    assert lines[0] == lines[1]


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_camera_info_keeps_every_parameter_of_every_model(tmp_path_factory, seed):
    camera = lens(np.random.default_rng(seed))
    path = tmp_path_factory.mktemp("info") / "info.yaml"
    write_camera_info(camera, path)
    assert read_camera_info(path) == dataclasses.replace(camera, covariance=(), rms=0.0)
    assert read_camera_info(path, camera="other").camera == "other"
    assert load_intrinsics(path).fingerprint == camera.fingerprint


def lie(content, key, value):
    """The content of a file with another entry; `key` is a path with dots, None removes the entry."""
    content = copy.deepcopy(content)
    *parents, last = key.split(".")
    place = content
    for name in parents:
        place = place[name]
    if value is None:
        del place[last]
    else:
        place[last] = value(place[last]) if callable(value) else value
    return content


def negative(matrix):
    return (-np.array(matrix)).tolist()


def lopsided(matrix):
    C = np.array(matrix)
    C[0, 1] += np.sqrt(C[0, 0] * C[1, 1])
    return C.tolist()


LIES = [
    (hand_eye, "result.covariance", negative),
    (hand_eye, "result.covariance", lopsided),
    (hand_eye, "result.covariance", lambda C: C[:5]),
    (hand_eye, "result.intrinsics.covariance", negative),
    (hand_eye, "result.intrinsics.fx", -600.0),
    (hand_eye, "result.quaternion", lambda q: [2.0 * x for x in q]),
    (hand_eye, "result.mounting", "eye_in_foot"),
    (hand_eye, "result.robot_position_noise", -1e-3),
    (hand_eye, "result.position", [0.0, 0.0]),
    (hand_eye, "result.intrinsics", None),
    (lens, "result.covariance", lopsided),
    (lens, "result.rms", -0.1),
    (lens, "result.width", 640.5),
    (lens, "result.fx", float("nan")),
    (lens, "result.model", "fisheye"),
    (wrench, "result.mass", -0.7),
    (wrench, "result.covariance", negative),
    (wrench, "result.bias", float("inf")),
    (wrench, "result.tare", 1.0),
    (arm, "result.settings.command_delay", -0.01),
    (arm, "result.settings.command_delay", None),
    (arm, "result.settings.stiffness", 1.0),
    (arm, "result.covariance", lambda C: [*C, C[0]]),
    (offset, "result.sigma", -1e-3),
    (offset, "result.delay", "soon"),
    (offset, "quality.good", None),
    (offset, "quality.figures", {"sigma_ms": float("nan")}),
    (offset, "version", 1),
    (offset, "kind", "wrench"),
]


@pytest.mark.parametrize(("make", "key", "value"), LIES, ids=lambda x: x if isinstance(x, str) else None)
def test_a_file_that_lies_is_refused(make, key, value, tmp_path):
    rng = np.random.default_rng(0)
    path, result = tmp_path / "result.yaml", make(rng)
    save_result(result, quality(rng), path)
    path.write_text(yaml.safe_dump(lie(yaml.safe_load(path.read_text()), key, value)))
    with pytest.raises(CalibrationError, match=r"result\.yaml"):
        load_result(path, type(result))


def test_a_file_of_a_result_that_was_not_good_is_refused_with_its_verdict(tmp_path):
    path = tmp_path / "result.yaml"
    save_result(offset(np.random.default_rng(0)), Quality(True, "good"), path)
    content = lie(yaml.safe_load(path.read_text()), "quality.good", False)
    path.write_text(yaml.safe_dump(lie(content, "quality.verdict", "uncertain by 9 ms")))
    with pytest.raises(CalibrationError, match=r"not good enough to be used: uncertain by 9 ms; calibrate again"):
        load_result(path, TimeOffset)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("camera_matrix.data", [600.0, 2.0, 320, 0, 600, 240, 0, 0, 1], "skew of 2.0; only 0 is supported"),
        ("camera_matrix.data", [600.0, 320.0], "is no camera_info file"),
        ("camera_matrix", None, "no calibration result"),
        ("distortion_model", "thin_prism", "valid: plumb_bob"),
        ("distortion_coefficients.data", ["a"], "is no camera_info file"),
        ("image_width", 0, "must be positive"),
        ("image_width", None, "KeyError"),
    ],
)
def test_a_camera_info_that_describes_no_camera_is_refused(key, value, message, tmp_path):
    path = tmp_path / "info.yaml"
    write_camera_info(lens(np.random.default_rng(1)), path)
    path.write_text(yaml.safe_dump(lie(yaml.safe_load(path.read_text()), key, value)))
    with pytest.raises(CalibrationError, match=message):
        load_intrinsics(path)


@given(seed=seeds)
@settings(max_examples=20, deadline=None)
def test_an_unloaded_sensor_reads_bias_and_weight(seed):
    """The wrench of the tool, by its definition, and nothing but the bias without gravity along the tool."""
    rng = np.random.default_rng(seed)
    tool = wrench(rng)
    R = Pose.from_rotvec(np.zeros(3), rng.normal(size=3)).matrix
    reading = tool.unloaded(R) - tool.bias
    assert np.linalg.norm(reading[:3]) == pytest.approx(9.81 * tool.mass)
    np.testing.assert_allclose(R @ reading[:3], [0.0, 0.0, -9.81 * tool.mass], atol=1e-9)
    np.testing.assert_allclose(reading[3:], np.cross(tool.center_of_mass, reading[:3]), atol=1e-12)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_a_hand_eye_pose_and_its_frames_belong_together(seed):
    result = hand_eye(np.random.default_rng(seed))
    T = result.T_parent_camera
    assert tuple(T.position) == result.position
    assert tuple(T.quaternion) == result.quaternion
    assert result.parent == {"eye_in_hand": "tcp", "eye_to_hand": "base"}[result.mounting]
    np.testing.assert_allclose(result.sigma**2, np.diag(result.covariance))
    assert result.camera == result.intrinsics.camera
