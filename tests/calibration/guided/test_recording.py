"""Recordings on disk: what is written is read back exactly, and what is wrong is refused with its place."""

import csv

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.guided.recording import (
    POSE_COLUMNS,
    SightingRecorder,
    picture_files,
    pose_of,
    read_frames,
    read_picture,
    read_poses,
    read_table,
    read_trajectory,
    read_wrenches,
)
from robot_rl.errors import DataError, RunDirectoryError
from robot_rl.geometry import Pose

seeds = st.integers(0, 10**6)


def table(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


def random_pose(rng):
    return Pose.from_rotvec(rng.uniform(-2, 2, 3), rng.uniform(-3, 3, 3))


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_a_recorded_session_is_read_back(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    recorder = SightingRecorder(tmp_path_factory.mktemp("session") / "new" / "session")
    given_ = {f'view {i}, "a".png': (random_pose(rng), rng.integers(0, 255, (6, 8, 3), np.uint8)) for i in range(4)}
    for i, (name, (T, image)) in enumerate(given_.items(), 1):
        recorder.add(image, name, T)
        assert recorder.count == i
        assert len(read_poses(recorder.folder / "poses.csv")) == i, "a session that is cut off here is complete"
    poses = read_poses(recorder.folder / "poses.csv")
    assert list(poses) == list(given_)
    for name, (T, image) in given_.items():
        np.testing.assert_allclose(poses[name].position, T.position, rtol=1e-15)
        np.testing.assert_allclose(poses[name].quaternion, T.quaternion, rtol=1e-12)
        np.testing.assert_array_equal(read_picture(recorder.folder / name), image)
    assert [path.name for path in picture_files([recorder.folder])] == sorted(given_)


def test_a_folder_that_is_there_is_not_written_over(tmp_path):
    SightingRecorder(tmp_path / "session")
    before = (tmp_path / "session" / "poses.csv").read_bytes()
    with pytest.raises(RunDirectoryError):
        SightingRecorder(tmp_path / "session")
    assert (tmp_path / "session" / "poses.csv").read_bytes() == before


@given(seed=seeds, count=st.integers(2, 8))
@settings(max_examples=10, deadline=None)
def test_trajectories_and_frames_keep_every_nanosecond(tmp_path_factory, seed, count):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("motion")
    stamps = np.cumsum(rng.integers(1, 10**8, count)) + 1_700_000_000_123_456_789
    poses = [random_pose(rng) for _ in range(count)]
    rows = [[s, *T.position.tolist(), *T.quaternion.tolist()] for s, T in zip(stamps, poses, strict=True)]
    trajectory = read_trajectory(table(folder / "trajectory.csv", ("stamp", *POSE_COLUMNS), rows))
    np.testing.assert_array_equal(trajectory.stamps, stamps)
    for a, b in zip(trajectory.poses, poses, strict=True):
        np.testing.assert_allclose(a.vector(), b.vector(), atol=1e-12)
    names = [f"{i}.png" for i in range(count)]
    frames = read_frames(table(folder / "frames.csv", ("image", "stamp"), zip(names, stamps, strict=True)))
    assert frames == dict(zip(names, stamps.tolist(), strict=True))


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_wrenches_keep_their_orientations(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    turns, readings = [random_pose(rng) for _ in range(5)], rng.normal(size=(5, 6))
    columns = ("qw", "qx", "qy", "qz", "fx", "fy", "fz", "tx", "ty", "tz")
    rows = [[*T.quaternion.tolist(), *w.tolist()] for T, w in zip(turns, readings, strict=True)]
    rotations, wrenches = read_wrenches(table(tmp_path_factory.mktemp("w") / "readings.csv", columns, rows))
    np.testing.assert_allclose(rotations, [T.matrix for T in turns], atol=1e-12)
    np.testing.assert_array_equal(wrenches, readings)


def test_the_order_of_columns_and_columns_of_others_do_not_matter(tmp_path):
    path = table(tmp_path / "a.csv", ("note", "stamp", " image"), [["x", "5", "a.png"], ["", "6", "b.png"]])
    assert read_frames(path) == {"a.png": 5, "b.png": 6}
    marked = tmp_path / "b.csv"
    marked.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # as spreadsheets write it
    assert read_frames(marked) == {"a.png": 5, "b.png": 6}
    assert [line for line, _ in read_table(path, ("stamp",))] == [2, 3]


POSE = "0.1,0.2,0.3,1,0,0,0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "lacks the columns image, x, y, z, qw, qx, qy, qz"),
        ("image,x,y,z,qw,qx,qy\na,0,0,0,1,0,0\n", "lacks the columns qz"),
        (f"image,x,y,z,qw,qx,qy,qz\na,{POSE}\na,{POSE}\n", "line 3: a appears twice"),
        ("image,x,y,z,qw,qx,qy,qz\na,0,nan,0,1,0,0,0\n", "line 2: y is 'nan', must be a finite number"),
        ("image,x,y,z,qw,qx,qy,qz\na,0,0,0,1,0,0\n", "line 2: qz is ''"),
        ("image,x,y,z,qw,qx,qy,qz\na,0,0,0,0.9,0,0,0\n", "line 2: the quaternion .* has length 0.9000, must be 1"),
        ("image,x,y,z,qw,qx,qy,qz\na,one,0,0,1,0,0,0\n", "line 2: x is 'one'"),
    ],
)
def test_a_wrong_table_is_refused_with_file_line_and_column(text, message, tmp_path):
    (tmp_path / "poses.csv").write_text(text)
    with pytest.raises(DataError, match=rf"poses\.csv.*{message}"):
        read_poses(tmp_path / "poses.csv")


@pytest.mark.parametrize("stamp", ["1.5", "1e9", "", "now", "--5", "9999999999999999999"])
def test_stamps_are_whole_nanoseconds(stamp, tmp_path):
    path = table(tmp_path / "frames.csv", ("image", "stamp"), [["a.png", stamp]])
    with pytest.raises(DataError, match="must be whole nanoseconds"):
        read_frames(path)


def test_what_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(DataError, match="no such file; it must have the columns image,stamp"):
        read_frames(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(DataError, match="cannot be read"):
        read_frames(tmp_path / "binary.csv")


@given(seed=seeds, factor=st.floats(0.9995, 1.0005))
@settings(max_examples=10, deadline=None)
def test_rounded_quaternions_are_normalised(seed, factor):
    T = random_pose(np.random.default_rng(seed))
    found = pose_of(np.concatenate((T.position, factor * T.quaternion)), "here")
    assert np.linalg.norm(found.quaternion) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(found.matrix, T.matrix, atol=1e-9)


# ------------------------------------------------------------------ pictures


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif"])
def test_pictures_are_rgb_in_every_lossless_format(suffix, tmp_path):
    image = np.random.default_rng(0).integers(0, 255, (12, 9, 3), np.uint8)
    (tmp_path / f"a{suffix}").write_bytes(cv2.imencode(suffix, image[:, :, ::-1])[1].tobytes())
    np.testing.assert_array_equal(read_picture(tmp_path / f"a{suffix}"), image)


def test_files_and_folders_of_pictures_are_listed_in_order(tmp_path):
    for name in ("b.png", "a.JPG", "notes.txt", "c.jpeg"):
        (tmp_path / name).write_bytes(b"x")
    assert [p.name for p in picture_files([tmp_path])] == ["a.JPG", "b.png", "c.jpeg"]
    single = tmp_path / "notes.txt"  # a file that is named is read, whatever it is called
    assert picture_files([single, tmp_path])[0] == single
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no pictures \(\.png, "):
        picture_files([tmp_path / "empty"])
    with pytest.raises(DataError, match="no such file or folder"):
        picture_files([tmp_path / "none"])


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n cut off"])
def test_a_damaged_picture_is_refused(content, tmp_path):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.png: is no picture, or damaged"):
        read_picture(tmp_path / "a.png")
    with pytest.raises(DataError, match=r"none\.png: cannot be read"):
        read_picture(tmp_path / "none.png")
