"""Views of a board without pictures: corners projected through a known lens, with known noise."""

import numpy as np

from calibration.camera.board import Board
from calibration.camera.view import BoardView
from calibration.hand_eye.problem import Guess, Sighting
from calibration.result import CameraIntrinsics
from robot_rl.geometry import Pose

BOARD = Board.parse("charuco:11x8:20mm:15mm")
PINHOLE = CameraIntrinsics(
    "wrist",
    640,
    480,
    "rational_polynomial",
    610.0,
    605.0,
    325.0,
    236.0,
    (-0.2, 0.05, 5e-4, -4e-4, -0.01, 0.02, 0.01, 0),
)
ROTATION_NOISE = np.radians(0.05)
FISHEYE = CameraIntrinsics("wrist", 640, 480, "equidistant", 280.0, 282.0, 322.0, 238.0, (-0.02, 0.01, -0.003, 0.001))


def random_view(rng, intrinsics=PINHOLE, *, noise=0.15, tilt=0.7, name="view", board=BOARD):
    """A view with at least 30 corners, and T_camera_board."""
    middle = board.corners.mean(axis=0)
    size = np.array([intrinsics.width, intrinsics.height])
    while True:
        turn = np.append(rng.uniform(-tilt, tilt, 2), rng.uniform(-1, 1))
        distance = rng.uniform(0.25, 0.5) * intrinsics.fx / 600
        place = rng.uniform(-0.3, 0.3, 2) * size / intrinsics.fx * distance
        T = Pose.from_rotvec(np.zeros(3), turn)
        T = Pose(np.append(place, distance) - T.matrix @ middle, T.quaternion)
        pixels = intrinsics.project(board.corners @ T.matrix.T + T.position)
        ids = np.flatnonzero(((pixels > 5) & (pixels < size - 6)).all(axis=1))
        if len(ids) >= 30:
            measured = pixels[ids] + noise * rng.standard_normal((len(ids), 2))
            return BoardView(name, (intrinsics.width, intrinsics.height), ids, measured, board.corners[ids]), T


def random_views(seed, count, intrinsics=PINHOLE, **options):
    rng = np.random.default_rng(seed)
    return [random_view(rng, intrinsics, name=f"view {i}", **options)[0] for i in range(count)]


def shaken(T, rng, position=2e-4, rotation=ROTATION_NOISE):
    """The pose with noise of the arm, per axis [m, rad]."""
    return T @ Pose.from_rotvec(rng.normal(0, position, 3), rng.normal(0, rotation, 3))


def random_rig(seed, mounting, count=15, *, noise=0.1, position=2e-4, rotation=ROTATION_NOISE):
    """Sightings of a random rig, and the truth: X and Y."""
    rng = np.random.default_rng(seed)
    X = Pose.from_rotvec(rng.uniform(-0.1, 0.1, 3), rng.uniform(-1, 1, 3))
    Y = Pose.from_rotvec(rng.uniform(-0.5, 0.5, 3), rng.uniform(-1, 1, 3))
    truth = Guess(mounting, X, Y, ())
    sightings = []
    for i in range(count):
        view, T = random_view(rng, noise=noise, name=f"view {i}")
        sightings.append(Sighting(view, shaken(truth.predict_tcp(T), rng, position, rotation)))
    return sightings, truth


def apart(a, b):
    """Distance [m] and angle [rad] between two poses."""
    change = (a.inverse() @ b).vector()
    return float(np.linalg.norm(change[:3])), float(np.linalg.norm(change[3:]))
