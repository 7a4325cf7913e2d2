"""The guided flow as a state machine: what each frame may change, and what the advice may claim."""

import cv2
import numpy as np
import pytest
from synthetic import BOARD, PINHOLE, random_rig, random_view, random_views

from calibration.camera.intrinsics import MIN_VIEWS, calibrate_intrinsics, coverage
from calibration.camera.view import BadViewError, BoardDetector
from calibration.guided.flow import HandEyeFlow, IntrinsicsFlow
from calibration.guided.session import CameraSession, SessionSetup
from calibration.hand_eye.hand_eye import calibrate_hand_eye
from calibration.hand_eye.planner import SafetyBox
from calibration.result import CameraIntrinsics, load_intrinsics
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

FLAT = CameraIntrinsics("wrist", 640, 480, "rational_polynomial", 610.0, 605.0, 325.0, 236.0, (0.0,) * 8)
SCALE = 4000.0  # [px/m]
PRINTED = cv2.copyMakeBorder(BOARD.image(SCALE), 20, 20, 20, 20, cv2.BORDER_CONSTANT, value=120)
MODEL = "rational_polynomial"


def picture(T_camera_board):
    """The printed board in perspective, through a lens without distortion."""
    rim = BOARD.margin + 20 / SCALE
    to_board = np.array([[1 / SCALE, 0, 0.5 / SCALE - rim], [0, 1 / SCALE, 0.5 / SCALE - rim], [0, 0, 1]])
    H = FLAT.matrix @ np.column_stack((T_camera_board.matrix[:, :2], T_camera_board.position)) @ to_board
    seen = cv2.warpPerspective(PRINTED, H, (640, 480), flags=cv2.INTER_AREA, borderValue=120)
    return cv2.GaussianBlur(seen, (0, 0), 0.7)


@pytest.fixture(scope="module")
def pictures():
    """Eighteen pictures of the board, all of which are accepted, and T_camera_board of each."""
    rng, detector, found = np.random.default_rng(0), BoardDetector(BOARD), []
    while len(found) < 18:
        _, T = random_view(rng, FLAT, tilt=0.6)
        try:
            detector.detect(picture(T), "candidate")
        except BadViewError:
            continue
        found.append((picture(T), T))
    return found


NOTHING = np.random.default_rng(0).integers(0, 255, (480, 640), np.uint8)


def test_only_accepted_frames_change_the_state(pictures):
    flow = IntrinsicsFlow(BOARD, "wrist", MODEL)
    before = flow.add(NOTHING, "noise")
    assert not before.accepted
    assert (before.views, before.coverage.sum(), before.rms, before.enough) == (0, 0, None, False)
    for i, (image, _) in enumerate(pictures[:6]):
        good = flow.add(image, f"good {i}")
        bad = flow.add(image[:, ::-1].copy(), f"mirrored {i}")
        assert (good.accepted, good.reason, good.views) == (True, "", i + 1)
        assert (bad.accepted, bad.views) == (False, i + 1)
        assert "is mirrored" in bad.reason
        np.testing.assert_array_equal(bad.coverage, good.coverage)
    assert list(flow.rejected) == ["noise", *(f"mirrored {i}" for i in range(6))]
    assert [view.name for view in flow.views] == [f"good {i}" for i in range(6)]


def test_progress_never_goes_back_and_enough_means_good(pictures):
    flow = IntrinsicsFlow(BOARD, "wrist", MODEL)
    covered, fitted = 0.0, False
    for i, (image, _) in enumerate(pictures):
        advice = flow.add(image, f"{i}")
        share = (advice.coverage > 0).mean()
        assert share >= covered
        np.testing.assert_array_equal(advice.coverage, coverage(flow.views))
        covered = share
        assert advice.next
        fitted = fitted or advice.rms is not None
        assert fitted == (advice.rms is not None), "a fit that was there is lost"
        assert fitted == (i + 1 >= 10), "the first fit is that of the tenth view"
        if advice.enough:
            assert flow.fit.quality.good
            assert advice.next.startswith("enough")
            assert advice.views >= 15
    assert advice.enough
    assert flow.fit.result.fx == pytest.approx(FLAT.fx, rel=3e-3)


@pytest.mark.slow
def test_finish_is_the_calibration_of_the_accepted_views(pictures):
    flow = IntrinsicsFlow(BOARD, "wrist", MODEL)
    with pytest.raises(CalibrationError, match="0 usable views"):
        flow.finish()
    flow.add(NOTHING, "noise")
    for i, (image, _) in enumerate(pictures[:12]):
        flow.add(image, f"{i}")
    fit, alone = flow.finish(), calibrate_intrinsics(flow.views, "wrist", MODEL)
    np.testing.assert_allclose(fit.result.vector[:4], alone.result.vector[:4], rtol=1e-4)
    assert "noise" in fit.quality.rejected
    again = flow.finish()
    np.testing.assert_allclose(again.result.vector, fit.result.vector, rtol=1e-9)


def test_a_live_camera_that_stands_still_adds_one_view(pictures):
    live, recorded = IntrinsicsFlow(BOARD, "wrist", MODEL, skip_similar=True), IntrinsicsFlow(BOARD, "wrist", MODEL)
    image, _ = pictures[0]
    for i in range(3):
        advice = live.add(image, f"{i}")
        assert recorded.add(image, f"{i}").accepted
        assert advice.accepted == (i == 0)
    assert "move it" in advice.reason
    assert advice.summary() == f"left out: {advice.reason}"
    assert live.add(pictures[1][0], "other").accepted
    assert (len(live.views), len(recorded.views)) == (2, 3)


def test_the_summary_has_what_an_operator_needs(pictures):
    flow = IntrinsicsFlow(BOARD, "wrist", MODEL)
    first = flow.add(pictures[0][0], "0")
    assert first.summary().startswith("view 1, ")
    assert "% of the picture covered; next: " in first.summary()
    for i in range(1, 10):
        advice = flow.add(pictures[i][0], f"{i}")
    assert f"error {advice.rms:.2f} px" in advice.summary()


# ------------------------------------------------------------------ hand-eye


@pytest.mark.parametrize("mounting", ["eye_in_hand", "eye_to_hand"])
def test_a_hand_eye_flow_fits_every_five_and_ends_as_the_calibration_of_all(mounting):
    sightings, _ = random_rig(0, mounting, 16)
    flow = HandEyeFlow(BOARD, PINHOLE, mounting, "fr3")
    for count, sighting in enumerate(sightings, 1):
        advice = flow.add_sighting(sighting)
        assert (advice.views, advice.accepted) == (count, True)
        assert (flow.fit is None) == (count < 10)
        if advice.enough:
            assert flow.fit.quality.good
    assert advice.enough
    fit, alone = flow.finish(), calibrate_hand_eye(PINHOLE, sightings, mounting, "fr3")
    assert fit.result == alone.result


def test_an_arm_that_does_not_turn_is_advised_to_turn():
    sightings, _ = random_rig(1, "eye_in_hand", 6)
    flow = HandEyeFlow(BOARD, PINHOLE, "eye_in_hand", "fr3")
    still = sightings[0].T_base_tcp
    for sighting in sightings:
        place = Pose(sighting.T_base_tcp.position, still.quaternion)
        advice = flow.add_sighting(type(sighting)(sighting.view, place))
    assert "turn and tilt the tool" in advice.next
    assert not advice.enough


def test_a_picture_of_another_size_is_an_error_and_no_view():
    flow = HandEyeFlow(BOARD, PINHOLE, "eye_in_hand", "fr3")
    with pytest.raises(CalibrationError, match="640 x 480 px, the images have 320 x 240"):
        flow.add(np.zeros((240, 320, 3), np.uint8), "small", Pose.identity())
    assert not flow.add(NOTHING, "noise", Pose.identity()).accepted
    assert list(flow.rejected) == ["noise"]
    assert flow.sightings == []


# ------------------------------------------------------------------ session

BOX = SafetyBox(np.full(3, -3.0), np.full(3, 3.0), Pose.identity().quaternion, np.pi)


def on_a_rig(pictures, seed=0):
    """The pictures with poses of an arm whose tool carries the camera; X and Y are drawn."""
    rng = np.random.default_rng(seed)
    X, Y = (Pose.from_rotvec(rng.uniform(-0.2, 0.2, 3), rng.uniform(-0.5, 0.5, 3)) for _ in range(2))
    return [(image, Y @ T.inverse() @ X.inverse()) for image, T in pictures], X


@pytest.mark.slow
@pytest.mark.parametrize("lens", [None, FLAT], ids=["lens unknown", "lens known"])
def test_a_session_finds_the_camera_and_writes_what_it_found(pictures, lens, tmp_path):
    taken, X = on_a_rig(pictures[:11])
    session = CameraSession(SessionSetup(BOARD, "wrist", "eye_in_hand", "fr3", lens=lens))
    with pytest.raises(CalibrationError, match=r"no picture shows the board .* bring it into view"):
        session.propose(BOX, 3)
    for i, (image, T) in enumerate(taken):
        assert session.is_new(T)
        assert session.add(image, f"{i}.png", T).accepted
        assert session.count == i + 1
        assert not session.is_new(T)
        assert not session.complete(i + 2), "there are fewer pictures than that"
        if i == 0:
            assert 6 <= len(session.propose(BOX, 3)) <= 8  # nothing is known: near the first pose
    assert not session.add(NOTHING, "noise", taken[0][1]).accepted
    assert session.count == 11
    assert session.complete(11)
    fit_of_lens, fit = session.finish()
    assert (fit_of_lens is None) == (lens is not None)
    assert np.linalg.norm(fit.result.T_parent_camera.position - X.position) < 3e-3
    assert len(session.propose(BOX, 3)) == 3
    lines, code = session.write_results(tmp_path)
    assert code == 0
    written = {path.name for path in tmp_path.iterdir()}
    expected = {"wrist_hand_eye.yaml", "wrist_hand_eye.html", "wrist_camera_info.yaml"}
    expected |= {"wrist_intrinsics.yaml", "wrist_intrinsics.html"} if lens is None else set()
    assert written == expected
    assert load_intrinsics(tmp_path / "wrist_hand_eye.yaml", robot="fr3").camera == "wrist"
    assert any("use it" in line for line in lines)


def test_a_pose_is_new_if_it_is_elsewhere_or_turned():
    session = CameraSession(SessionSetup(BOARD, "wrist", "eye_in_hand", "fr3"))
    start = Pose.from_rotvec(np.array([0.4, 0.0, 0.3]), np.array([3.0, 0.1, 0.0]))
    assert session.is_new(start)
    session.add(NOTHING, "noise", start)  # a picture that does not count was tried there all the same
    for change, new in (([0.02, 0, 0], False), ([0.04, 0, 0], True), ([0, 0, -0.031], True)):
        assert session.is_new(start @ Pose.from_rotvec(np.array(change), np.zeros(3))) == new
    for turn, new in ((4.0, False), (6.0, True)):
        assert session.is_new(start @ Pose.from_rotvec(np.zeros(3), np.radians([0.0, turn, 0.0]))) == new


def test_too_few_views_have_no_result():
    session = CameraSession(SessionSetup(BOARD, "wrist", "eye_in_hand", "fr3", lens=PINHOLE))
    with pytest.raises(CalibrationError, match="0 usable views"):
        session.finish()
    assert not session.complete(0)
    assert len(random_views(0, MIN_VIEWS - 1)) < MIN_VIEWS
    with pytest.raises(CalibrationError, match=f"{MIN_VIEWS - 1} usable views, needed are {MIN_VIEWS}"):
        calibrate_intrinsics(random_views(0, MIN_VIEWS - 1), "wrist")
