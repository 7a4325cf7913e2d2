"""Recorded motions with a planted delay, and readings of a wrench sensor with a planted tool."""

import numpy as np
from synthetic import BOARD, PINHOLE, random_view, shaken

from calibration.arm.time_offset import StampedImage
from calibration.arm.trajectory import Trajectory
from calibration.camera.view import BoardView
from calibration.hand_eye.problem import Guess
from calibration.result import HandEye, ToolWrench
from robot_rl.geometry import Pose

START = 1_700_000_000_000_000_000  # [ns], as a clock of ROS says it


def motion(seed, mounting, *, delay, size=1.0, rate=30.0, span=2.5, intrinsics=PINHOLE):
    """Frames at 30 Hz that are stamped late, and the arm's poses at 100 Hz."""
    rng = np.random.default_rng(seed)
    X = Pose.from_rotvec(rng.uniform(-0.1, 0.1, 3), rng.uniform(-1, 1, 3))
    Y = Pose.from_rotvec(rng.uniform(-0.5, 0.5, 3), rng.uniform(-1, 1, 3))
    truth = Guess(mounting, X, Y, ())
    _, T_camera_board = random_view(rng, intrinsics, tilt=0.2)
    middle = truth.predict_tcp(T_camera_board)
    swing = size * np.concatenate((rng.uniform(0.02, 0.04, 3), rng.uniform(0.05, 0.1, 3))) * rng.choice([-1, 1], 6)
    speed, phase = rng.uniform(3, 5, 6), rng.uniform(0, 2 * np.pi, 6)

    def at(t):
        d = swing * np.sin(speed * t + phase)
        return middle @ Pose.from_rotvec(d[:3], d[3:])

    times = np.arange(-0.7, span + 0.7, 0.01)
    stamps = START + np.rint(1e9 * times).astype(np.int64)
    trajectory = Trajectory(stamps, [shaken(at(t), rng, 1e-4, 2e-4) for t in times])
    frames = []
    for i, t in enumerate(np.arange(0.0, span, 1 / rate) + rng.uniform(0, 0.01)):
        T = truth.predict_board(at(t))
        pixels = intrinsics.project(BOARD.corners @ T.matrix.T + T.position)
        ids = np.flatnonzero(((pixels > 0) & (pixels < [639, 479])).all(axis=1))
        if len(ids) >= 12:
            measured = pixels[ids] + rng.normal(0, 0.15, (len(ids), 2))
            view = BoardView(f"frame {i}", (640, 480), ids, measured, BOARD.corners[ids])
            frames.append(StampedImage(view, START + round(1e9 * (t + delay))))
    covariance = tuple(map(tuple, np.eye(6).tolist()))
    position, quaternion = tuple(X.position.tolist()), tuple(X.quaternion.tolist())
    fingerprint = intrinsics.fingerprint
    hand_eye = HandEye("fr3", mounting, position, quaternion, covariance, intrinsics, fingerprint, 1e-4, 2e-4)
    return hand_eye, frames, trajectory


EYE = tuple(map(tuple, np.eye(10).tolist()))
TRUTH = ToolWrench("fr3", (3.0, -5.0, 8.0, 0.2, -0.1, 0.4), 0.73, (0.004, -0.011, 0.052), EYE)


def readings(seed, truth=TRUTH, count=20, *, force_noise=0.05, torque_noise=0.003, tilt=1.5):
    rng = np.random.default_rng(seed)
    turns = [
        Pose.from_rotvec(np.zeros(3), np.append(rng.uniform(-tilt, tilt, 2), rng.uniform(-1, 1))) for _ in range(count)
    ]
    rotations = np.stack([(Pose(np.zeros(3), np.array([0.0, 1, 0, 0])) @ T).matrix for T in turns])
    noise = rng.standard_normal((count, 6)) * np.repeat([force_noise, torque_noise], 3)
    return rotations, np.stack([truth.unloaded(R) for R in rotations]) + noise
