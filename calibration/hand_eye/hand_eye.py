"""Hand-eye calibration: pose of a camera on the arm or beside it, its uncertainty, and the views that contradict it.

A consensus of closed forms gives the start. A joint refinement over reprojection errors, the arm's errors and the lens
gives the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.camera.board_pose import board_pose
from calibration.camera.lens_prior import LensPrior
from calibration.camera.view import BadViewError, reasons
from calibration.hand_eye.closed_form import METHODS, closed_form, consensus
from calibration.hand_eye.problem import Guess, Sighting, resized
from calibration.hand_eye.refinement import HandEyeRefinement
from calibration.hand_eye.rotation_spread import check_rotations
from calibration.result import CameraIntrinsics, HandEye, Quality
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

MIN_VIEWS = 6
"""Least number of views: with fewer, wrong poses cannot be detected."""
MAX_REJECTED = 0.34
"""Largest share of views that may be left out."""
MIN_TRAVEL = 3e-3
"""Least root mean square distance of the tcp from its mean place, for the size of the board to be determined [m]."""
MAX_POSITION_SIGMA, MAX_ROTATION_SIGMA = 0.7e-3, np.radians(0.15)
"""Largest accepted standard deviation of the result, per axis [m, rad]."""
MAX_POSITION_NOISE, MAX_ROTATION_NOISE = 3e-3, np.radians(0.6)
"""Noise of the arm's poses above which something is wrong with the arm, its stamps or the board [m, rad]."""
_SCALE_TOLERANCE = 0.004
"""Largest accepted relative error of the board's size: 0.1 mm on a square of 25 mm."""


@dataclass(frozen=True, eq=False)
class HandEyeFit:
    """A hand-eye calibration and everything that its report shows.

    Attributes:
        result: The content of the result file.
        quality: Whether the result is good enough to be used.
        given: The intrinsics before they were corrected.
        T_parent_board: The board in the frame that it is fixed to: `base` for eye in hand, `tcp` for eye to hand.
        used: Names of the views in use.
        errors: Error of the arm's pose in each of them [m, rad], tcp frame, shape (n, 6).
        pixel_errors: Reprojection errors of each [px].
        leave_one_out: Change of X without each view [m, rad], shape (n, 6), in axes of its parent.
        closed_forms: X by OpenCV's solvers on the same views.
        scale: Size of the board by the arm's motion, over the stated one, and its standard deviation.
    """

    result: HandEye
    quality: Quality
    given: CameraIntrinsics
    T_parent_board: Pose
    used: tuple[str, ...]
    errors: np.ndarray
    pixel_errors: tuple[np.ndarray, ...]
    leave_one_out: np.ndarray
    closed_forms: dict[str, Pose]
    scale: tuple[float, float]


def calibrate_hand_eye(
    intrinsics: CameraIntrinsics,
    sightings: Sequence[Sighting],
    mounting: str,
    robot: str,
    *,
    rejected: Mapping[str, str] | None = None,
    seed: int = 0,
) -> HandEyeFit:
    """Find the pose of a camera.

    Args:
        intrinsics: Camera and lens. With a covariance, the lens is corrected within it, and the corrected lens is
            part of the result; without one, the lens is fixed.
        sightings: Pictures of one board that stays where it is (on the table for `eye_in_hand`, in the gripper for
            `eye_to_hand`), and the poses of the arm.
        mounting: `eye_in_hand` or `eye_to_hand`.
        robot: Name of the arm and tool.
        rejected: Pictures that were rejected before, and why; they are recorded.
        seed: Seed of the random subsets.

    Raises:
        CalibrationError: if there are too few views or too little rotation or motion, the size of the board differs
            from the stated one, or the poses contradict each other.
    """
    left_out = dict(rejected or {})
    sightings, boards, noise = _board_poses(intrinsics, sightings, left_out)
    check_rotations([sighting.T_base_tcp for sighting in sightings])
    _check_travel([sighting.T_base_tcp for sighting in sightings])
    start = consensus(mounting, sightings, boards, np.random.default_rng(seed))
    if start is None:
        raise CalibrationError("no hand-eye pose fits these views; check that the poses belong to the pictures")
    guess, factor = start
    larger = [resized(sighting, factor) for sighting in sightings]
    lens = LensPrior.from_intrinsics(intrinsics)
    free = HandEyeRefinement(lens, larger, guess, noise, scale=True).run()
    scale = factor * free.scale, factor * free.scale_sigma
    _check_scale(scale)
    fixed = Guess(mounting, free.guess.X, free.guess.Y, tuple(boards))
    fit = HandEyeRefinement(lens, sightings, fixed, noise, scale=False, keep=free.keep).run()
    keep = np.flatnonzero(fit.keep)
    for i in np.flatnonzero(~fit.keep):
        error = (sightings[i].T_base_tcp.inverse() @ fit.guess.predict_tcp(boards[i])).vector()
        left_out[sightings[i].view.name] = (
            f"the arm's pose is off by {1e3 * np.linalg.norm(error[:3]):.1f} mm and "
            f"{np.degrees(np.linalg.norm(error[3:])):.2f} deg; did it move, or is the stamp late?"
        )
    total = len(sightings)
    if len(keep) < max(MIN_VIEWS, (1.0 - MAX_REJECTED) * total):
        raise CalibrationError(
            f"{total - len(keep)} of {total} views contradict the rest: {reasons(left_out)}; check that the poses "
            "belong to the pictures, that the board did not move, and that the arm stood still"
        )
    kept = [sightings[i] for i in keep]
    check_rotations([sighting.T_base_tcp for sighting in kept])
    return _conclude(intrinsics, kept, [boards[i] for i in keep], fit, robot, left_out, scale)


def _board_poses(
    intrinsics: CameraIntrinsics, sightings: Sequence[Sighting], rejected: dict[str, str]
) -> tuple[list[Sighting], list[Pose], float]:
    """Return the usable views, the poses of the board in them, and the pixel noise; record why others are left out."""
    kept, boards, squares, freedom = [], [], 0.0, 0
    for sighting in sightings:
        view = sighting.view
        intrinsics.require(size=view.size)
        if not np.isfinite(sighting.T_base_tcp.vector()).all():
            rejected[view.name] = "the arm's pose is not finite"
            continue
        try:
            T, terms = board_pose(intrinsics, view)
        except BadViewError as error:
            rejected[view.name] = str(error)
            continue
        clear = np.minimum(np.abs(terms.errors), 1.5)  # [px]; an outlier counts as that
        squares += float((clear**2).sum())
        freedom += 2 * len(view.ids) - 6
        kept.append(sighting)
        boards.append(T)
    if len(kept) < MIN_VIEWS:
        raise CalibrationError(
            f"{len(kept)} usable views, needed are {MIN_VIEWS}, better 15"
            + (f": {reasons(rejected)}" if rejected else "")
        )
    return kept, boards, max(float(np.sqrt(squares / freedom)), 0.02)


def _check_travel(poses: Sequence[Pose]) -> None:
    """Raise `CalibrationError` if the tcp hardly moves: pure rotation about it fits a board of any size."""
    places = np.array([T.position for T in poses])
    travel = float(np.sqrt(((places - places.mean(axis=0)) ** 2).sum(axis=1).mean()))
    if travel < MIN_TRAVEL:
        raise CalibrationError(
            f"the tcp stayed within {1e3 * travel:.1f} mm (root mean square), so that the size of the board is not "
            "determined; move it by 5 cm or more from view to view, and also turn it"
        )


def _check_scale(scale: tuple[float, float]) -> None:
    factor, sigma = scale
    if abs(factor - 1.0) > max(_SCALE_TOLERANCE, 4.0 * sigma):
        raise CalibrationError(
            f"by the arm's motion, the board is {factor:.3f} +- {2 * sigma:.3f} times as large as stated; "
            "measure its squares with a ruler and give the true size, or check the units of the arm's poses"
        )


def _conclude(
    intrinsics: CameraIntrinsics,
    sightings: Sequence[Sighting],
    boards: Sequence[Pose],
    fit: HandEyeRefinement,
    robot: str,
    rejected: dict[str, str],
    scale: tuple[float, float],
) -> HandEyeFit:
    guess, solution = fit.guess, fit.solution
    R = np.kron(np.eye(2), guess.X.matrix)  # from axes of the camera to those of its parent
    covariance = R @ solution.covariance[:6, :6] @ R.T
    apart = np.array([_without(fit, i) for i in range(len(sightings))]) @ R.T
    poses = [sighting.T_base_tcp for sighting in sightings]
    forms = {name: closed_form(name, guess.mounting, poses, boards) for name in METHODS}
    seen = [T for T, kept in zip(guess.boards, fit.keep, strict=True) if kept]
    pixel_errors = tuple(
        s.view.pixels - fit.intrinsics.project(s.view.points @ T.matrix.T + T.position)
        for s, T in zip(sightings, seen, strict=True)
    )
    rms = float(np.sqrt(np.mean(np.concatenate(pixel_errors) ** 2)))
    result = HandEye(
        robot=robot,
        mounting=guess.mounting,
        position=tuple(guess.X.position.tolist()),
        quaternion=tuple(guess.X.quaternion.tolist()),
        covariance=tuple(map(tuple, covariance.tolist())),
        intrinsics=fit.corrected_lens(rms),
        calibrated_from=intrinsics.fingerprint,
        robot_position_noise=fit.position_noise,
        robot_rotation_noise=fit.rotation_noise,
    )
    return HandEyeFit(
        result=result,
        quality=_assess_quality(result, len(sightings), rejected, apart, fit.deviations, scale),
        given=intrinsics,
        T_parent_board=guess.Y,
        used=tuple(sighting.view.name for sighting in sightings),
        errors=solution.left,
        pixel_errors=pixel_errors,
        leave_one_out=apart,
        closed_forms={name: X for name, X in forms.items() if X is not None},
        scale=scale,
    )


def _without(fit: HandEyeRefinement, i: int) -> np.ndarray:
    """Return the change of X without the i-th view in use, in axes of the camera. Shape (6,)."""
    others = [row for j, row in enumerate(fit.rows) if j != i]
    return (fit.solve(others).z - fit.solution.z)[:6]


def _assess_quality(
    result: HandEye,
    used: int,
    rejected: dict[str, str],
    apart: np.ndarray,
    deviations: np.ndarray,
    scale: tuple[float, float],
) -> Quality:
    sigma = result.sigma
    position, rotation = float(sigma[:3].max()), float(sigma[3:].max())
    figures = {
        "views": float(used),
        "views_rejected": float(len(rejected)),
        "sigma_position_mm": 1e3 * position,
        "sigma_rotation_deg": float(np.degrees(rotation)),
        "reprojection_rms_px": result.intrinsics.rms,
        "lens_corrected_by_sigma": float(np.abs(deviations).max(initial=0.0)),
        "robot_position_noise_mm": 1e3 * result.robot_position_noise,
        "robot_rotation_noise_deg": float(np.degrees(result.robot_rotation_noise)),
        "leave_one_out_mm": 1e3 * float(np.linalg.norm(apart[:, :3], axis=1).max()),
        "leave_one_out_deg": float(np.degrees(np.linalg.norm(apart[:, 3:], axis=1).max())),
        "board_scale": scale[0],
        "board_scale_sigma": scale[1],
    }
    problems = []
    if position > MAX_POSITION_SIGMA or rotation > MAX_ROTATION_SIGMA:
        problems.append(
            f"uncertain by {2e3 * position:.2f} mm and {np.degrees(2 * rotation):.2f} deg (2 sigma); add views, with "
            "larger tilts about several axes"
        )
    if result.robot_position_noise > MAX_POSITION_NOISE or result.robot_rotation_noise > MAX_ROTATION_NOISE:
        problems.append(
            f"the arm's poses and the pictures contradict each other by {1e3 * result.robot_position_noise:.1f} mm and "
            f"{np.degrees(result.robot_rotation_noise):.2f} deg; is the board fixed, do the poses belong to "
            "the pictures?"
        )
    verdict = "; ".join(problems) or (
        f"good: camera known to {2e3 * position:.2f} mm and {np.degrees(2 * rotation):.3f} deg (2 sigma) per axis from "
        f"{used} views"
    )
    return Quality(not problems, verdict, figures, rejected)
