"""A run says which calibrations it was made with, keeps copies, and is not gone on with others."""

import dataclasses
import hashlib
import json

import numpy as np
import pytest

from calibration.result import (
    CameraIntrinsics,
    HandEye,
    Quality,
    SimulatedArm,
    save_result,
    write_camera_info,
)
from robot_rl.cli.main import main
from robot_rl.config.components import EvaluationConfig, SACConfig, SimulationConfig, TrainConfig
from robot_rl.data.store.edit import merge
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import CalibrationError
from robot_rl.run.demonstrate import check_demonstrations
from robot_rl.run.directory.calibrations import Calibrations, read_record
from robot_rl.run.directory.run_directory import RunDirectory

LENS = CameraIntrinsics("wrist", 640, 480, "plumb_bob", 600.0, 601.0, 310.0, 230.0, (0.1, -0.2, 1e-3, 2e-3, 0.3))
SIX = tuple(map(tuple, np.eye(6).tolist()))
HAND_EYE = HandEye("fr3", "eye_in_hand", (0.0, 0.06, -0.1), (1.0, 0.0, 0.0, 0.0), SIX, LENS, "x", 0.0, 0.0)
ARM = SimulatedArm("fr3", SimulationConfig(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0), tuple(map(tuple, np.eye(7).tolist())))


@pytest.fixture
def folder(tmp_path):
    save_result(LENS, Quality(True, "good"), tmp_path / "lens.yaml")
    save_result(HAND_EYE, Quality(True, "good"), tmp_path / "hand_eye.yaml")
    save_result(ARM, Quality(True, "good"), tmp_path / "arm.yaml")
    write_camera_info(LENS, tmp_path / "info.yaml")
    return tmp_path


def other(folder, **changes):
    """A hand-eye result that differs in that."""
    lens = {key: changes.pop(key) for key in ("camera", "width") if key in changes}
    result = dataclasses.replace(HAND_EYE, intrinsics=dataclasses.replace(LENS, **lens), **changes)
    save_result(result, Quality(True, "good"), folder / "other.yaml")
    return folder / "other.yaml"


def of(*paths, **options):
    return Calibrations([read_record(path) for path in paths], **options)


def test_a_file_says_whose_it_is(folder):
    kinds = {"lens": "intrinsics", "hand_eye": "hand_eye", "arm": "sim", "info": "camera_info"}
    for name, kind in kinds.items():
        record = read_record(folder / f"{name}.yaml")
        assert record.kind == kind
        assert record.camera == ("" if name == "arm" else "wrist")
        assert record.size == (() if name == "arm" else (640, 480))
        assert record.robot == ("fr3" if name in ("arm", "hand_eye") else "")
        assert record.sha256 == hashlib.sha256((folder / f"{name}.yaml").read_bytes()).hexdigest()
    of(*(folder / f"{name}.yaml" for name in kinds), robot="fr3", cameras=("front", "wrist"))


def test_another_robot_camera_or_resolution_is_refused_and_both_sides_are_named(folder):
    lens, hand_eye, arm = folder / "lens.yaml", folder / "hand_eye.yaml", folder / "arm.yaml"
    with pytest.raises(CalibrationError, match=r"hand_eye.yaml is of robot 'fr3', the run of 'ur5'"):
        of(hand_eye, robot="ur5")
    with pytest.raises(CalibrationError, match=r"other.yaml is of robot 'ur5', .*arm.yaml of 'fr3'"):
        of(arm, other(folder, robot="ur5"))
    with pytest.raises(CalibrationError, match=r"lens.yaml is of camera 'wrist', the run sees front, side"):
        of(lens, cameras=("front", "side"))
    of(f"side={lens}", cameras=("front", "side"))  # wrist is a serial number, so to speak
    with pytest.raises(CalibrationError, match="is of no camera"):
        of(f"side={arm}")
    with pytest.raises(CalibrationError, match=r"other.yaml is of camera 'wrist' at 320 x 480 px, .* at 640 x 480 px"):
        of(lens, other(folder, width=320))
    with pytest.raises(CalibrationError, match="both the hand_eye of wrist"):
        of(hand_eye, other(folder))
    (folder / "odd.yaml").write_text("a: 1\n")
    with pytest.raises(CalibrationError, match="is no calibration result"):
        of(folder / "odd.yaml")
    with pytest.raises(CalibrationError, match=r"no.yaml: no such file; `robot-rl calibrate` makes it"):
        of(folder / "no.yaml")


def test_a_run_keeps_copies_and_is_not_resumed_with_others(folder, capsys):
    hand_eye, run = folder / "hand_eye.yaml", folder / "run"
    config = TrainConfig(task="reach", robot="fr3", calibrations=(str(hand_eye),))
    original = hand_eye.read_bytes()
    with RunDirectory.create(run, config, calibrations=Calibrations.of(config)) as made:
        facts = RunDirectory.read_calibrations(made.path)["hand_eye of wrist"]
    assert (run / "calibrations" / "hand_eye_of_wrist.yaml").read_bytes() == original
    assert json.loads((run / "provenance.json").read_text())["calibrations"]["hand_eye of wrist"] == facts
    assert facts["sha256"] == hashlib.sha256(original).hexdigest()
    save_result(dataclasses.replace(HAND_EYE, position=(0.0, 0.06, -0.11)), Quality(True, "good"), hand_eye)
    before, after = facts["sha256"][:12], hashlib.sha256(hand_eye.read_bytes()).hexdigest()[:12]
    assert main(["train", "--resume", "--out", str(run)]) == 1
    said = capsys.readouterr().err
    assert "was started with another calibration (hand_eye of wrist)" in said
    assert before in said
    assert after in said
    assert "camera wrist, 640 x 480 px, robot fr3" in said
    with pytest.raises(CalibrationError, match=r"now it is none. Its copy is in .*calibrations"):
        Calibrations(()).check_same(RunDirectory.read_calibrations(run), run)
    of(run / "calibrations" / "hand_eye_of_wrist.yaml").check_same(RunDirectory.read_calibrations(run), run)


def test_a_run_whose_file_is_gone_goes_on_with_its_own_copy(folder, capsys):
    hand_eye, moved, run = folder / "hand_eye.yaml", folder / "moved.yaml", folder / "run"
    nothing = EvaluationConfig(episodes=1, curve_interval=0, video_episodes=0)
    small = {"demonstrations": 1, "env_steps": 20, "sac": SACConfig(hidden_sizes=(8,)), "evaluation": nothing}
    config = TrainConfig(task="reach", robot="fr3", calibrations=(str(hand_eye),), **small)
    with RunDirectory.create(run, config, calibrations=Calibrations.of(config)) as made:
        made.begun = True
    copy = run / "calibrations" / "hand_eye_of_wrist.yaml"
    hand_eye.rename(moved)
    original = copy.read_bytes()
    copy.write_bytes(original + b"# edited\n")
    assert main(["train", "--resume", "--out", str(run)]) == 1
    assert f"now it is {copy}" in capsys.readouterr().err
    copy.write_bytes(original)
    assert main(["train", "--resume", "--out", str(run)]) == 0
    assert f"{hand_eye} is gone; the run goes on with its own copy, {copy}" in capsys.readouterr().err
    assert main(["train", "--resume", "--out", str(run), "--calibration", str(moved)]) == 0
    assert main(["train", "--resume", "--out", str(run), "--calibration", str(folder / "typo.yaml")]) == 1
    assert "typo.yaml: no such file" in capsys.readouterr().err


def test_demonstrations_keep_theirs(folder, capsys):
    store, lens = folder / "demos", folder / "lens.yaml"
    flags = ["demo", "reach", "--episodes", "1", "--out", str(store), "--camera", "wrist", "--calibration", str(lens)]
    assert main(["demo", "reach", "--out", str(store), "--camera", "front", "--calibration", str(lens)]) == 1
    assert "is of camera 'wrist', the run sees front" in capsys.readouterr().err
    assert not store.exists()
    assert main(flags) == 0
    assert (store / "calibrations" / "intrinsics_of_wrist.yaml").read_bytes() == lens.read_bytes()
    with EpisodeStore.open(store) as opened:
        assert opened.metadata["calibrations"]["intrinsics of wrist"]["size"] == [640, 480]
        assert len(opened) == 1


def test_a_run_is_not_begun_with_demonstrations_of_another_calibration(folder, capsys):
    lens, moved, hand_eye, demos = (folder / name for name in ("lens.yaml", "moved.yaml", "hand_eye.yaml", "demos"))
    save_result(dataclasses.replace(LENS, fx=610.0), Quality(True, "good"), moved)
    assert (
        main(["demo", "reach", "--episodes", "1", "--out", str(demos), "--camera", "wrist", "--calibration", str(lens)])
        == 0
    )
    run = folder / "run"
    train = ["train", "reach", "--demos", str(demos), "--out", str(run), "--obs", "pixels", "--calibration", str(moved)]
    capsys.readouterr()
    assert main(train) == 1
    said = capsys.readouterr().err
    assert f"{demos} was recorded with another calibration (intrinsics of wrist): with {lens}" in said
    assert f"now it is {moved}" in said
    assert "give the run that (--calibration)" in said
    assert not run.exists()
    # A policy that sees, but names no calibration, is no better; who does not see is not concerned.
    with pytest.raises(CalibrationError, match="now it is none"):
        check_demonstrations(demos, "reach", of(cameras=("wrist", "front")))
    check_demonstrations(demos, "reach", of())
    check_demonstrations(demos, "reach", of(cameras=("front",)))
    check_demonstrations(demos, "reach", of(lens, hand_eye, cameras=("wrist",)))
    # What was put together from several stores knows what each of them was recorded with.
    merge([demos], folder / "merged")
    with pytest.raises(CalibrationError, match=f"{demos} was recorded with another"):
        check_demonstrations(folder / "merged", "reach", of(moved))
