"""The planner: allowed poses that show the board and tell more than random ones."""

import numpy as np
import pytest
from rigs import BOXES, random_truth, rough
from synthetic import BOARD, PINHOLE

from calibration.camera.intrinsics import calibrate_intrinsics
from calibration.camera.view import BoardView
from calibration.hand_eye.planner import SafetyBox, initial_poses, plan_poses
from calibration.hand_eye.rotation_spread import check_rotations
from calibration.result import MOUNTINGS
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose


@pytest.mark.parametrize("mounting", MOUNTINGS)
def test_poses_are_allowed_show_the_board_and_turn_enough(mounting):
    truth, box = random_truth(1, mounting), BOXES[mounting]
    asked = []

    def reachable(T):
        asked.append(T)
        return T.position[1] < 0.2

    poses = plan_poses(PINHOLE, BOARD, rough(truth), box, 10, reachable=reachable)
    assert len(poses) == 10
    assert all(box.allows(T) and T.position[1] < 0.2 for T in poses)
    assert {id(T) for T in poses} <= {id(T) for T in asked}
    check_rotations(poses)
    for T in poses:
        seen = truth.predict_board(T)
        pixels = PINHOLE.project(BOARD.corners @ seen.matrix.T + seen.position)
        assert ((pixels >= 0) & (pixels <= [639, 479])).all(axis=1).mean() > 0.4  # planned with a rough guess


def test_a_box_from_which_the_board_is_not_seen_is_refused():
    truth = random_truth(1, "eye_in_hand")
    box = BOXES["eye_in_hand"]
    aside = np.array([0.0, 2.0, 0.0])
    away = SafetyBox(box.low + aside, box.high + aside, box.orientation, box.max_turn)
    with pytest.raises(CalibrationError, match="only 0 of 6000 random poses inside the safety box show the board"):
        plan_poses(PINHOLE, BOARD, truth, away, 10)


def test_the_box_limits_position_and_turn():
    box = BOXES["eye_in_hand"]
    middle = Pose(np.array([0.5, 0.0, 0.3]), box.orientation)
    turned = middle @ Pose.from_rotvec(np.zeros(3), np.radians([0.0, 61.0, 0.0]))
    assert box.allows(middle)
    assert not box.allows(turned)
    assert not box.allows(Pose(np.array([0.5, 0.0, 0.05]), box.orientation))


def test_looking_around_turns_about_all_axes_and_moves_to_and_fro_inside_the_box():
    box = BOXES["eye_in_hand"]
    middle = Pose(np.array([0.5, 0.0, 0.3]), box.orientation)
    poses = initial_poses(middle, box)
    assert len(poses) == 8
    check_rotations([middle, *poses])
    for pose in poses:
        change = (middle.inverse() @ pose).vector()
        assert np.abs(change[:3]) == pytest.approx([0.0, 0.0, 0.02])
        assert np.degrees(np.linalg.norm(change[3:])) < 22
    assert sum((middle.inverse() @ pose).position[2] for pose in poses) == pytest.approx(0.0)
    assert initial_poses(Pose(np.array([0.5, 0.0, 0.05]), box.orientation), box) == []


@pytest.mark.parametrize("mounting", MOUNTINGS)
def test_poses_tell_about_the_lens_too(mounting):
    """What is known of the principal point from the planned pictures: more than from random ones."""
    truth, box = random_truth(2, mounting), BOXES[mounting]

    def center_sigma(seed, count, among):
        poses = plan_poses(PINHOLE, BOARD, truth, box, among, seed=seed)[:count]
        views = []
        for i, T in enumerate(poses):
            seen = truth.predict_board(T)
            pixels = PINHOLE.project(BOARD.corners @ seen.matrix.T + seen.position)
            ids = np.flatnonzero(((pixels > 0) & (pixels < [639, 479])).all(axis=1))
            noise = 0.1 * np.random.default_rng(i).standard_normal((len(ids), 2))
            views.append(BoardView(f"{i}", (640, 480), ids, pixels[ids] + noise, BOARD.corners[ids]))
        return calibrate_intrinsics(views, "wrist", start=PINHOLE).result.sigma[2:4].max()

    assert center_sigma(0, 12, 12) < center_sigma(0, 12, 40)  # the first of 40 on a short way are any
