"""The planner: allowed poses that show the board and tell more than random ones."""

import numpy as np
import pytest
from rigs import BOXES, random_truth, rough
from synthetic import BOARD, PINHOLE

from calibration.planner import SafetyBox, plan_poses
from calibration.result import MOUNTINGS
from calibration.rotation_spread import check_rotations
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
        seen = truth.see(T)
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
