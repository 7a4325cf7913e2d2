"""Calibration of a camera's delay from a short motion in front of a board; the hand-eye pose is known.

With the right delay, the board stays at one place in its parent frame. A search over delays for the least spread of
the board's pose gives the start; it is a cross-correlation of all six coordinates. Generalised least squares over the
delay and the board's pose then gives the result and its uncertainty; the noise of the pixels and of the arm is
estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from calibration.arm.trajectory import Trajectory
from calibration.camera.board_pose import board_pose, step
from calibration.camera.view import BadViewError, BoardView
from calibration.hand_eye.problem import Guess, Row, Solution, make_row, solve
from calibration.result import CameraIntrinsics, HandEye, Quality, TimeOffset
from calibration.result.reasons import reasons
from robot_rl.clock import NS_PER_S
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose, quat_from_matrix

MIN_FRAMES = 20
MAX_SIGMA = 1.5e-3
"""Largest standard deviation of a delay that is good enough [s]."""
_LONGEST = 0.5
"""Largest delay of the search, in both directions [s]."""
_SEARCH_STEP = 0.01
_CONTRAST = 2.0
"""Least ratio of the board's spread at the worst delay to that at the best; below it, the arm hardly moved."""
_PIXEL_NOISE = 0.2
"""Assumed noise of corners [px]; the estimated noise of the arm absorbs any difference."""
_OUTLIER = 5.0
"""Distance in standard deviations above which a frame is left out."""


@dataclass(frozen=True, eq=False)
class StampedImage:
    """A view of the board and the stamp that the camera gave it [ns]."""

    view: BoardView
    stamp: int


@dataclass(frozen=True, eq=False)
class TimeOffsetFit:
    """A time offset and everything that its report shows.

    Attributes:
        result: The content of the result file.
        quality: Whether the result is good enough to be used.
        search: Delays [s] and the spread of the board's pose for each [m], shape (n, 2).
        stamps: Stamps of the frames in use [ns].
        errors: Residual of each: the arm's pose against the picture [m, rad], shape (n, 6).
        errors_before: The same without a delay, shape (n, 6).
    """

    result: TimeOffset
    quality: Quality
    search: np.ndarray
    stamps: np.ndarray
    errors: np.ndarray
    errors_before: np.ndarray


def calibrate_time_offset(
    hand_eye: HandEye,
    frames: Sequence[StampedImage],
    trajectory: Trajectory,
    *,
    rejected: Mapping[str, str] | None = None,
) -> TimeOffsetFit:
    """Find the delay of a camera.

    Args:
        hand_eye: Pose and lens of the camera.
        frames: Views during the motion, with the stamps of the camera.
        trajectory: Motion of the arm, with its own stamps, on the same clock.
        rejected: Pictures that were rejected before, and why; they are recorded.

    Raises:
        CalibrationError: if there are too few frames, the arm hardly moved, or no delay fits.
    """
    left_out = dict(rejected or {})
    frames, boards, covariances = _board_poses(hand_eye.intrinsics, frames, left_out)
    X, mounting = hand_eye.T_parent_camera, hand_eye.mounting
    search = _search(mounting, X, frames, boards, trajectory)
    best = int(search[:, 1].argmin())
    if best in (0, len(search) - 1):
        raise CalibrationError(
            f"no delay between -{_LONGEST} and {_LONGEST} s fits; are pictures and poses stamped by one clock?"
        )
    if search[:, 1].max() < _CONTRAST * search[best, 1]:
        raise CalibrationError(
            "the arm hardly moved, so that any delay fits; swing it back and forth in front of the board, by 5 cm and "
            "10 deg or more, about twice a second"
        )
    model = _OffsetModel(mounting, X, frames, boards, covariances, trajectory)
    delay, Y = float(search[best, 0]), _board(mounting, X, frames, boards, trajectory, float(search[best, 0]))
    keep = np.ones(len(frames), bool)
    for _ in range(12):
        delay, Y, sigma, errors, distances = model.fit(delay, Y, keep)
        bad = keep & (distances > _OUTLIER)
        if not bad.any():
            break
        keep &= distances <= max(_OUTLIER, 0.5 * float(distances[keep].max()))
    for i in np.flatnonzero(~keep):
        left_out[frames[i].view.name] = "contradicts the others; is the picture blurred, or its stamp irregular?"
    if keep.sum() < max(MIN_FRAMES, 0.67 * len(keep)):
        raise CalibrationError(
            f"only {keep.sum()} of {len(keep)} frames fit one delay; are the camera's stamps regular?"
        )
    chosen = [frame for frame, kept in zip(frames, keep, strict=True) if kept]
    before = model.errors(0.0, _board(mounting, X, frames, boards, trajectory, 0.0))[keep]
    result = TimeOffset(hand_eye.robot, hand_eye.camera, delay, sigma)
    quality = _assess_quality(result, int(keep.sum()), errors[keep], before, left_out)
    stamps = np.array([frame.stamp for frame in chosen])
    return TimeOffsetFit(result, quality, search, stamps, errors[keep], before)


def _board_poses(
    intrinsics: CameraIntrinsics, frames: Sequence[StampedImage], rejected: dict[str, str]
) -> tuple[list[StampedImage], list[Pose], list[np.ndarray]]:
    """Return the usable frames, poses of the board in them and their covariances; record why others are left out."""
    kept, boards, covariances = [], [], []
    for frame in frames:
        intrinsics.require(size=frame.view.size)
        try:
            T, terms = board_pose(intrinsics, frame.view, _PIXEL_NOISE)
        except BadViewError as error:
            rejected[frame.view.name] = str(error)
            continue
        kept.append(frame)
        boards.append(T)
        covariances.append(np.linalg.inv(terms.H))
    if len(kept) < MIN_FRAMES:
        raise CalibrationError(
            f"{len(kept)} usable frames, needed are {MIN_FRAMES}"
            + (f": {'; '.join(reasons(rejected))}" if rejected else "")
        )
    return kept, boards, covariances


def _fixed(mounting: str, X: Pose, T_camera_board: Pose, T_base_tcp: Pose) -> Pose:
    """Return the pose of the board in the frame that it is fixed to, from one picture."""
    return (T_base_tcp if mounting == "eye_in_hand" else T_base_tcp.inverse()) @ X @ T_camera_board


def _search(
    mounting: str, X: Pose, frames: Sequence[StampedImage], boards: Sequence[Pose], trajectory: Trajectory
) -> np.ndarray:
    """Return delays [s] and the spread of the board's pose for each [m], with a lever of 0.2 m. Shape (n, 2)."""
    rows = []
    for delay in np.arange(-_LONGEST, _LONGEST + 1e-9, _SEARCH_STEP):
        found = []
        for frame, T in zip(frames, boards, strict=True):
            here = trajectory.at(frame.stamp - delay * NS_PER_S)
            if here is not None:
                Y = _fixed(mounting, X, T, here[0])
                found.append(np.concatenate((Y.position, 0.2 * Y.matrix[:, :2].T.ravel())))
        if len(found) >= max(MIN_FRAMES, len(frames) // 2):
            middle = np.median(found, axis=0)
            rows.append((delay, float(np.median(np.linalg.norm(np.array(found) - middle, axis=1)))))
    if len(rows) < 3:
        raise CalibrationError(
            "the trajectory covers too few of the frames; record the arm's poses from before the first picture to "
            "after the last, at 50 Hz or more, on the clock of the pictures"
        )
    return np.array(rows)


def _board(
    mounting: str, X: Pose, frames: Sequence[StampedImage], boards: Sequence[Pose], trajectory: Trajectory, delay: float
) -> Pose:
    """Return the pose of the board in the frame that it is fixed to: the median over all pictures."""
    found = []
    for frame, T in zip(frames, boards, strict=True):
        here = trajectory.at(frame.stamp - delay * NS_PER_S)
        if here is not None:
            found.append(_fixed(mounting, X, T, here[0]))
    U, _, Vt = np.linalg.svd(np.median([Y.matrix for Y in found], axis=0))
    return Pose(
        np.median([Y.position for Y in found], axis=0),
        quat_from_matrix(U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt),
    )


class _OffsetModel:
    """The linear model of the hand-eye problem with X known, Y free, and the delay as one more unknown."""

    def __init__(
        self,
        mounting: str,
        X: Pose,
        frames: Sequence[StampedImage],
        boards: Sequence[Pose],
        covariances: Sequence[np.ndarray],
        trajectory: Trajectory,
    ) -> None:
        self._mounting, self._X, self._trajectory = mounting, X, trajectory
        self._pictures = list(zip(frames, boards, covariances, strict=True))
        self._noises = np.log([5e-4, 1e-3])

    def errors(self, delay: float, Y: Pose) -> np.ndarray:
        """Return the arm's pose against each picture [m, rad], shape (n, 6); NaN where the trajectory has no pose."""
        return np.array([np.full(6, np.nan) if row is None else row.e for row in self._rows(delay, Y)])

    def fit(self, delay: float, Y: Pose, keep: np.ndarray) -> tuple[float, Pose, float, np.ndarray, np.ndarray]:
        """Fit delay and board.

        Returns:
            Delay [s], pose of the board, standard deviation of the delay [s], errors [m, rad], shape (n, 6), and their
            sizes in standard deviations, shape (n,).
        """
        for _ in range(10):
            rows = self._rows(delay, Y)
            known = [row for row, kept in zip(rows, keep, strict=True) if kept and row is not None]
            solution = self._estimate(known)
            delay, Y = delay + float(solution.z[6]), Y @ step(solution.z[:6])
            if abs(solution.z[6]) < 1e-7:
                break
        arm = np.diag(np.repeat(np.exp(2 * self._noises), 3))
        errors, distances = np.full((len(rows), 6), np.nan), np.full(len(rows), np.inf)
        for i, row in enumerate(rows):
            if row is not None:
                errors[i] = row.e + row.G @ solution.z
                distances[i] = np.sqrt(errors[i] @ np.linalg.solve(row.picture + arm, errors[i]) / 6.0)
        # Errors of neighbouring frames are correlated: there are fewer independent errors than frames.
        by_delay = np.array([row.G[:, 6] for row in known])
        scores = np.einsum("ni,nij,nj->n", by_delay, solution.weights, solution.left)
        alike = float(np.clip(scores[1:] @ scores[:-1] / max(scores @ scores, 1e-12), 0.0, 0.9))
        sigma = float(np.sqrt(solution.covariance[6, 6] * (1 + alike) / (1 - alike)))
        return delay, Y, sigma, errors, distances

    def _rows(self, delay: float, Y: Pose) -> list[Row | None]:
        rows: list[Row | None] = []
        for frame, T, covariance in self._pictures:
            here = self._trajectory.at(frame.stamp - delay * NS_PER_S)
            if here is None:
                rows.append(None)
                continue
            row = make_row(Guess(self._mounting, self._X, Y, (T,)), T, here[0], covariance, np.zeros(6))
            # A larger delay moves the arm's pose back along its way, and the error forth.
            rows.append(replace(row, G=np.column_stack((row.G[:, 6:], here[1]))))
        return rows

    def _estimate(self, rows: Sequence[Row]) -> Solution:
        def cost(logarithms: np.ndarray) -> float:
            return solve(rows, *np.exp(np.clip(logarithms, np.log(1e-6), np.log(1e-1)))).likelihood

        try:
            found = minimize(
                cost, self._noises, method="Nelder-Mead", options={"xatol": 1e-2, "fatol": 1e-3, "maxiter": 100}
            )
            self._noises = np.clip(found.x, np.log(1e-6), np.log(1e-1))
            return solve(rows, *np.exp(self._noises))
        except np.linalg.LinAlgError as error:
            raise CalibrationError("the motion does not determine the delay; turn and move to and fro") from error


def _assess_quality(
    result: TimeOffset, frames: int, errors: np.ndarray, before: np.ndarray, rejected: dict[str, str]
) -> Quality:
    figures = {
        "frames": float(frames),
        "frames_rejected": float(len(rejected)),
        "delay_ms": 1e3 * result.delay,
        "sigma_ms": 1e3 * result.sigma,
        "error_before_mm": 1e3 * float(np.sqrt(np.nanmean(before[:, :3] ** 2))),
        "error_after_mm": 1e3 * float(np.sqrt(np.mean(errors[:, :3] ** 2))),
    }
    if result.sigma > MAX_SIGMA:
        verdict = (
            f"uncertain by {2e3 * result.sigma:.1f} ms (2 sigma); move faster, turn to and fro several times, the "
            "board always in view"
        )
        return Quality(False, verdict, figures, rejected)
    verdict = (
        f"good: frames are {1e3 * result.delay:.1f} +- {2e3 * result.sigma:.1f} ms late (2 sigma); the pictures and "
        f"the arm agree to {figures['error_after_mm']:.2f} mm, before to {figures['error_before_mm']:.2f} mm"
    )
    return Quality(True, verdict, figures, rejected)
