"""Rigs of the simulated arm, board and camera, as in a laboratory, and sessions recorded on them."""

import numpy as np
from synthetic import BOARD, PINHOLE, shaken

from calibration.guided.recording import SightingRecorder
from calibration.hand_eye.planner import SafetyBox, plan_poses
from calibration.hand_eye.problem import Guess
from robot_rl.geometry import Pose, quat_from_matrix
from sim.calibration.rig import CalibrationRig, PictureFaults, Plate
from sim.scene import DOWNWARD

PLATE = Plate(BOARD.black_rectangles(), BOARD.extent, BOARD.margin)
BOXES = {
    "eye_in_hand": SafetyBox(np.array([0.25, -0.35, 0.1]), np.array([0.75, 0.35, 0.65]), DOWNWARD, np.radians(60)),
    "eye_to_hand": SafetyBox(np.array([0.3, -0.35, 0.2]), np.array([0.7, 0.35, 0.65]), DOWNWARD, np.radians(60)),
}


def axes(x, y, z):
    """Quaternion of the frame whose axes these are."""
    return quat_from_matrix(np.column_stack((x, y, z)).astype(float))


def random_truth(seed, mounting):
    """Where camera and board may be in a laboratory: X and Y."""
    rng = np.random.default_rng([seed, len(mounting)])
    small = Pose.from_rotvec(rng.uniform(-0.02, 0.02, 3), rng.uniform(-0.1, 0.1, 3))
    other = Pose.from_rotvec(rng.uniform(-0.02, 0.02, 3), rng.uniform(-0.1, 0.1, 3))
    if mounting == "eye_in_hand":
        X = Pose.from_rotvec(np.array([0.0, 0.06, -0.12]), np.array([0.0, 0.0, np.pi / 2]))
        Y = Pose.from_rotvec(np.array([0.45, 0.08, 0.04]), np.array([np.pi, 0.0, 0.0]))
    else:  # the gripper holds the board by its edge, its face to the camera in front of the arm
        X = Pose(np.array([1.05, 0.0, 0.4]), axes([0, 1, 0], [0, 0, -1], [-1, 0, 0]))
        Y = Pose(np.array([0.03, 0.11, -0.02]), axes([0, -1, 0], [0, 0, 1], [-1, 0, 0]))
    return Guess(mounting, X @ small, Y @ other, ())


def rough(truth, seed=0):
    """What one knows before: the camera's pose to a centimetre and two degrees."""
    rng = np.random.default_rng([seed, 5])
    X = truth.X @ Pose.from_rotvec(rng.normal(0, 0.01, 3), rng.normal(0, 0.035, 3))
    return Guess(truth.mounting, X, truth.Y, ())


def make_rig(truth, intrinsics=PINHOLE):
    return CalibrationRig(PLATE, intrinsics, truth.mounting, truth.X, truth.Y)


def planned(rig, truth, count, *, intrinsics=PINHOLE, seed=0):
    """Poses of the planner that the arm can reach."""
    box, guess = BOXES[truth.mounting], rough(truth, seed)
    return plan_poses(intrinsics, BOARD, guess, box, count, reachable=rig.reachable, seed=seed)


def record(rig, poses, folder, seed=0, faults=PictureFaults()):  # noqa: B008  (frozen)
    """A folder of pictures and `poses.csv`, as a user records them."""
    rng, recorder = np.random.default_rng(seed), SightingRecorder(folder)
    for i, T in enumerate(poses):
        recorder.add(rig.render(T, faults, rng), f"view_{i:02d}.png", shaken(T, rng))
