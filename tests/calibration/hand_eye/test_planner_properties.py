"""The planner: every further pose adds information, less and less; and nothing depends on names or frames."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rigs import BOXES, random_truth
from synthetic import BOARD, PINHOLE, apart

from calibration.camera.view import BoardView
from calibration.hand_eye.planner import SafetyBox, initial_poses, plan_poses
from calibration.hand_eye.problem import Sighting, linearise
from calibration.result import MOUNTINGS
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

mountings = pytest.mark.parametrize("mounting", MOUNTINGS)
vectors = st.tuples(*[st.floats(-1.0, 1.0)] * 3).map(np.array)


def information(truth, poses):
    """Information of pictures from these poses on the camera's pose, that of the board unknown: the log determinant."""
    sightings = []
    for i, T in enumerate(poses):
        seen = truth.predict_board(T)
        pixels = PINHOLE.project(BOARD.corners @ seen.matrix.T + seen.position)
        ids = np.flatnonzero(((pixels > 0) & (pixels < [639, 479])).all(axis=1))
        sightings.append(Sighting(BoardView(f"{i}", (640, 480), ids, pixels[ids], BOARD.corners[ids]), T))
    guess = dataclasses.replace(truth, boards=tuple(truth.predict_board(T) for T in poses))
    arm = np.diag(np.repeat([2e-4**2, 1e-3**2], 3))
    total = 1e-3 * np.eye(12)
    for row in linearise(PINHOLE, sightings, guess, 0.15, scale=False):
        total = total + row.G.T @ np.linalg.solve(row.picture + arm, row.G)
    return np.linalg.slogdet(total)[1] - np.linalg.slogdet(total[6:, 6:])[1]


def keys(poses):
    return {tuple(np.round(T.vector(), 9)) for T in poses}


@mountings
def test_more_poses_are_the_same_and_others_and_tell_more(mounting):
    """A greedy choice: the poses for a smaller count are among those for a larger one."""
    truth = random_truth(1, mounting)
    plans = [plan_poses(PINHOLE, BOARD, truth, BOXES[mounting], count) for count in (4, 6, 8, 12)]
    for few, many in itertools.pairwise(plans):
        assert keys(few) < keys(many)
    gains = [information(truth, plan) for plan in plans]
    assert gains == sorted(gains)
    per_pose = np.diff(gains) / [2, 2, 4]
    assert per_pose[-1] < per_pose[0]


@mountings
def test_planned_poses_tell_more_than_drawn_ones(mounting):
    truth = random_truth(2, mounting)
    planned = information(truth, plan_poses(PINHOLE, BOARD, truth, BOXES[mounting], 6))
    drawn = []
    for seed in range(3):
        some = plan_poses(PINHOLE, BOARD, truth, BOXES[mounting], 60, seed=seed)
        drawn.append(information(truth, [some[i] for i in np.random.default_rng(seed).permutation(60)[:6]]))
    assert planned > max(drawn)


def test_a_plan_is_a_function_of_its_seed():
    truth, box = random_truth(3, "eye_in_hand"), BOXES["eye_in_hand"]
    one, same, other = (plan_poses(PINHOLE, BOARD, truth, box, 5, seed=seed) for seed in (0, 0, 1))
    assert [T.vector().tolist() for T in one] == [T.vector().tolist() for T in same]
    assert keys(one) != keys(other)


def test_the_way_is_shorter_than_a_random_one():
    truth, box = random_truth(4, "eye_in_hand"), BOXES["eye_in_hand"]
    poses = plan_poses(PINHOLE, BOARD, truth, box, 12)

    def length(order):
        changes = [(poses[a].inverse() @ poses[b]).vector() for a, b in itertools.pairwise(order)]
        return sum(np.linalg.norm(c[:3]) / 0.1 + np.linalg.norm(c[3:]) / np.radians(30) for c in changes)

    rng = np.random.default_rng(0)
    assert length(range(12)) < np.mean([length(rng.permutation(12).tolist()) for _ in range(20)])


def test_an_arm_that_reaches_nothing_has_no_plan():
    truth, box = random_truth(5, "eye_in_hand"), BOXES["eye_in_hand"]
    with pytest.raises(CalibrationError, match="needed are 5; move the board"):
        plan_poses(PINHOLE, BOARD, truth, box, 5, reachable=lambda T: False)


# ------------------------------------------------------------------ the box


@given(position=vectors, rotvec=vectors, Q=st.builds(lambda r: Pose.from_rotvec(np.zeros(3), r), vectors))
@settings(max_examples=30, deadline=None)
def test_the_box_measures_turns_from_its_own_orientation(position, rotvec, Q):
    """Turned along with the tool, it allows the same; a larger box allows more; the sign of a quaternion is none."""
    box = SafetyBox(np.full(3, -0.5), np.full(3, 0.5), Pose.from_rotvec(np.zeros(3), 0.3 * rotvec).quaternion, 0.6)
    T = Pose.from_rotvec(position, rotvec)
    turned = dataclasses.replace(box, orientation=(Q @ Pose(np.zeros(3), box.orientation)).quaternion)
    angle = np.linalg.norm((Pose(np.zeros(3), box.orientation).inverse() @ T).rotvec)
    if abs(angle - 0.6) > 1e-6:
        assert turned.allows(Pose(T.position, (Q @ T).quaternion)) == box.allows(T)
        assert box.allows(Pose(T.position, -T.quaternion)) == box.allows(T)
    larger = SafetyBox(box.low - 0.2, box.high + 0.2, box.orientation, 0.9)
    assert larger.allows(T) or not box.allows(T)
    assert box.allows(T) == bool((np.abs(position) <= 0.5).all() and angle <= 0.6) or abs(angle - 0.6) < 1e-6


@given(T=st.builds(lambda p, r: Pose.from_rotvec(p, r), vectors, vectors), phase=st.floats(-3.0, 3.0))
@settings(max_examples=20, deadline=None)
def test_the_first_poses_move_along_with_the_start_and_stay_in_the_box(T, phase):
    everywhere = SafetyBox(np.full(3, -9.0), np.full(3, 9.0), T.quaternion, np.pi)
    poses = initial_poses(T, everywhere, phase=phase)
    at_origin = initial_poses(
        Pose.identity(), dataclasses.replace(everywhere, orientation=Pose.identity().quaternion), phase=phase
    )
    assert len(poses) == len(at_origin) == 8
    for a, b in zip(poses, at_origin, strict=True):
        assert max(apart(a, T @ b)) < 1e-7
    small = SafetyBox(T.position - 0.01, T.position + 0.01, T.quaternion, np.pi)
    assert all(small.allows(pose) for pose in initial_poses(T, small, phase=phase))
    assert keys(initial_poses(T, small, phase=phase)) <= keys(poses)
