"""`robot-rl calibrate hand-eye` on pictures during which the camera slipped: named, and fitted in two parts."""

import csv
import json
import shutil

import numpy as np
import pytest
from rigs import make_rig, planned, random_truth
from slips import moved_camera
from synthetic import BOARD, PINHOLE, apart, shaken

from calibration.guided.recording import SightingRecorder
from calibration.hand_eye.problem import Guess
from calibration.result import HandEye, load_result, write_camera_info
from robot_rl.cli.main import main
from sim.calibration.rig import PictureFaults

COUNT, FIRST, MM, SEED = 18, 9, 3.0, 3
LAST_BEFORE, FIRST_AFTER = f"view_{FIRST - 1:02d}.png", f"view_{FIRST:02d}.png"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """Pictures of a camera that slips by 3 mm half way, and where it is before and after."""
    folder = tmp_path_factory.mktemp("slip") / "session"
    recorder, rng = SightingRecorder(folder), np.random.default_rng(0)
    truth = random_truth(SEED, "eye_in_hand")
    after = Guess("eye_in_hand", moved_camera(truth, SEED, MM), truth.Y, ())
    rig = make_rig(truth)
    poses = planned(rig, truth, COUNT)
    for i, T in enumerate(poses):
        if i == FIRST:
            rig.close()
            rig = make_rig(after)
        recorder.add(rig.render(T, PictureFaults(), rng), f"view_{i:02d}.png", shaken(T, rng))
    rig.close()
    write_camera_info(PINHOLE, folder.parent / "lens.yaml")
    return folder, truth.X, after.X


def calibrate(folder, *options):
    known = ("--board", BOARD, "--intrinsics", folder.parent / "lens.yaml", "--mounting", "eye-in-hand", "--robot", "r")
    return main([str(item) for item in ("calibrate", "hand-eye", folder, *known, *options)])


def read_table(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def write_table(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(rows)


def test_a_slip_is_named_and_both_parts_can_be_fitted(session, tmp_path, capsys):
    folder, before, after = session
    out = tmp_path / "camera.yaml"
    assert calibrate(folder, "--out", out) == 1
    shown = "".join(capsys.readouterr())
    assert f"between {LAST_BEFORE} and {FIRST_AFTER}" in shown
    assert f"--split {FIRST_AFTER}" in shown
    assert not out.exists()

    assert calibrate(folder, "--out", out, "--split", FIRST_AFTER, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    for file, X in ((out, after), (tmp_path / "camera_before.yaml", before)):
        result, _ = load_result(file, HandEye)
        position, _ = apart(X, result.T_parent_camera)
        assert position < 1e-3
    assert answer["before"]["out"] == str(tmp_path / "camera_before.yaml")


def test_a_part_that_cannot_be_fitted_spoils_only_itself(session, tmp_path, capsys):
    folder, _, _ = session
    late = folder.with_name("late")
    late.mkdir()
    header, *rows = read_table(folder / "poses.csv")
    for name, *_ in rows[FIRST - 2 :]:
        shutil.copy(folder / name, late)
    write_table(late / "poses.csv", [header, *rows[FIRST - 2 :]])
    assert calibrate(late, "--out", tmp_path / "camera.yaml", "--split", FIRST_AFTER) == 0
    assert f"the pictures before {FIRST_AFTER}: 2 usable views, needed are 6" in capsys.readouterr().out
    for name in ("view_00.png", "view_99.png"):
        assert calibrate(folder, "--out", tmp_path / "camera.yaml", "--split", name) == 1
        assert f"--split is '{name}', must be a picture of the recording and not the first" in capsys.readouterr().err


def test_stamps_give_the_order_and_must_be_stamps(session, tmp_path, capsys):
    """The rows are shuffled, and the stamps put them right."""
    folder, _, _ = session
    header, *rows = read_table(folder / "poses.csv")
    stamped = [[*row, 10**9 * i] for i, row in enumerate(rows)]
    table = tmp_path / "poses.csv"
    for order, message in (
        (stamped[::2] + stamped[1::2], f"between {LAST_BEFORE} and {FIRST_AFTER}"),
        ([*stamped[:-1], [*rows[-1], 0]], "stamp 0 appears twice"),
        ([*stamped[:-1], [*rows[-1], "noon"]], "stamp is 'noon', must be whole nanoseconds"),
    ):
        write_table(table, [[*header, "stamp"], *order])
        assert calibrate(folder, "--poses", table, "--out", tmp_path / "camera.yaml") == 1
        assert message in "".join(capsys.readouterr())
