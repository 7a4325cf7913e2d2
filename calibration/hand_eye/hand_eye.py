"""Hand-eye calibration: pose of a camera on the arm or beside it, its uncertainty, and the views that contradict it.

A consensus of closed forms gives the start. A joint refinement over reprojection errors, the arm's errors and the lens
gives the result. A test over the order of the views names a camera or a board that moved meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.camera.board_pose import board_pose
from calibration.camera.lens_prior import LensPrior
from calibration.camera.view import BadViewError
from calibration.hand_eye.closed_form import METHODS, closed_form, consensus
from calibration.hand_eye.problem import Guess, Sighting, resized
from calibration.hand_eye.refinement import HandEyeRefinement
from calibration.hand_eye.rotation_spread import check_rotations
from calibration.hand_eye.slip import Slip, find_slip
from calibration.result import MOUNTINGS, CameraIntrinsics, HandEye, Quality
from calibration.result.reasons import reasons
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
_WHERE = {
    "eye_in_hand": "eye in hand (the camera on the tool)",
    "eye_to_hand": "eye to hand (the camera beside the arm)",
}
"""Words for the mountings."""


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
        slip: The test whether camera or board moved; None if there are too few views for it.
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
    slip: Slip | None


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
            `eye_to_hand`), and the poses of the arm, in order of time. If all have stamps, a drift is one in time,
            else one over the order.
        mounting: `eye_in_hand` or `eye_to_hand`.
        robot: Name of the arm and tool.
        rejected: Pictures that were rejected before, and why; they are recorded.
        seed: Seed of the random subsets.

    Raises:
        CalibrationError: if there are too few views or too little rotation or motion, the size of the board differs
            from the stated one, or the poses contradict each other; if a slip or the other mounting explains that, the
            message names it.
    """
    left_out = dict(rejected or {})
    sightings, boards, noise = _board_poses(intrinsics, sightings, left_out)
    check_rotations([sighting.T_base_tcp for sighting in sightings])
    _check_travel([sighting.T_base_tcp for sighting in sightings])
    try:
        fit = _fit_and_test(intrinsics, sightings, boards, noise, mounting, robot, left_out, seed)
    except CalibrationError as error:
        _check_mounting(intrinsics, sightings, boards, noise, mounting, seed, error)
        raise
    if _is_noisy(fit.result.robot_position_noise, fit.result.robot_rotation_noise):
        _check_mounting(intrinsics, sightings, boards, noise, mounting, seed)
    return fit


def _fit_and_test(
    intrinsics: CameraIntrinsics,
    sightings: list[Sighting],
    boards: list[Pose],
    noise: float,
    mounting: str,
    robot: str,
    left_out: dict[str, str],
    seed: int,
) -> HandEyeFit:
    """Fit the views, and record in `left_out` which contradict the rest.

    Raises:
        CalibrationError: see `calibrate_hand_eye`.
    """
    start = consensus(mounting, sightings, boards, np.random.default_rng(seed))
    if start is None:
        raise CalibrationError("no hand-eye pose fits these views; check that the poses belong to the pictures")
    guess, factor = start
    larger = [resized(sighting, factor) for sighting in sightings]
    lens = LensPrior.from_intrinsics(intrinsics)
    free = HandEyeRefinement(lens, larger, guess, noise, scale=True).run()
    slip = find_slip(free, [sighting.view.name for sighting in sightings], _times(sightings))
    try:
        scale = factor * free.scale, factor * free.scale_sigma
        _check_scale(scale)
        fixed = Guess(mounting, free.guess.X, free.guess.Y, tuple(boards))
        fit = HandEyeRefinement(lens, sightings, fixed, noise, scale=False, keep=free.keep).run()
        for i in np.flatnonzero(~fit.keep):
            left_out[sightings[i].view.name] = _contradiction(fit.guess, sightings[i], boards[i])
        _check_share(int(fit.keep.sum()), len(sightings), left_out)
        keep = np.flatnonzero(fit.keep)
        check_rotations([sightings[i].T_base_tcp for i in keep])
    except CalibrationError as error:
        if slip is not None and slip.found:  # it is the reason for the rest
            raise CalibrationError(slip.summary()) from error
        raise
    kept = [sightings[i] for i in keep]
    return _conclude(intrinsics, kept, [boards[i] for i in keep], fit, robot, left_out, scale, slip)


def _check_mounting(
    intrinsics: CameraIntrinsics,
    sightings: Sequence[Sighting],
    boards: Sequence[Pose],
    noise: float,
    mounting: str,
    seed: int,
    cause: CalibrationError | None = None,
) -> None:
    """Raise `CalibrationError` if views that contradict the stated mounting fit the other one."""
    other = next(name for name in MOUNTINGS if name != mounting)
    start = consensus(other, sightings, boards, np.random.default_rng(seed))
    if start is None:
        return
    larger = [resized(sighting, start[1]) for sighting in sightings]
    try:
        fit = HandEyeRefinement(LensPrior.from_intrinsics(intrinsics), larger, start[0], noise, scale=True).run()
    except CalibrationError:
        return
    if _is_enough(int(fit.keep.sum()), len(sightings)) and not _is_noisy(fit.position_noise, fit.rotation_noise):
        raise CalibrationError(
            f"the views contradict the mounting {_WHERE[mounting]} and fit {_WHERE[other]}; give the "
            "mounting of the rig"
        ) from cause


def _is_noisy(position_noise: float, rotation_noise: float) -> bool:
    """Return whether arm and pictures contradict each other too much [m, rad]."""
    return position_noise > MAX_POSITION_NOISE or rotation_noise > MAX_ROTATION_NOISE


def _is_enough(kept: int, total: int) -> bool:
    """Return whether so many views agree that the others may be left out."""
    return kept >= max(MIN_VIEWS, (1.0 - MAX_REJECTED) * total)


def _times(sightings: Sequence[Sighting]) -> np.ndarray:
    """Return the times of the views, shape (n,): their stamps [ns] if all have one, else their numbers."""
    stamps = [sighting.stamp for sighting in sightings if sighting.stamp is not None]
    if len(stamps) < len(sightings):
        return np.arange(len(sightings), dtype=float)
    passed = np.array([stamp - stamps[0] for stamp in stamps], dtype=float)
    if (np.diff(passed) <= 0).any():
        raise CalibrationError("the stamps of the views do not rise; give the views in order of time")
    return passed


def _contradiction(guess: Guess, sighting: Sighting, T_camera_board: Pose) -> str:
    """Return why a view was left out that contradicts the rest."""
    error = (sighting.T_base_tcp.inverse() @ guess.predict_tcp(T_camera_board)).vector()
    return (
        f"the arm's pose is off by {1e3 * np.linalg.norm(error[:3]):.1f} mm and "
        f"{np.degrees(np.linalg.norm(error[3:])):.2f} deg; did it move, or is the stamp late?"
    )


def _check_share(kept: int, total: int, left_out: Mapping[str, str]) -> None:
    """Raise `CalibrationError` if too many views contradict the rest."""
    if not _is_enough(kept, total):
        raise CalibrationError(
            f"{total - kept} of {total} views contradict the rest: {'; '.join(reasons(left_out))}; check that the "
            "poses belong to the pictures, that the board did not move, and that the arm stood still"
        )


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
            + (f": {'; '.join(reasons(rejected))}" if rejected else "")
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
    slip: Slip | None,
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
        quality=_assess_quality(result, len(sightings), rejected, apart, fit.deviations, scale, slip),
        given=intrinsics,
        T_parent_board=guess.Y,
        used=tuple(sighting.view.name for sighting in sightings),
        errors=solution.left,
        pixel_errors=pixel_errors,
        leave_one_out=apart,
        closed_forms={name: X for name, X in forms.items() if X is not None},
        scale=scale,
        slip=slip,
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
    slip: Slip | None,
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
    if slip is not None:
        figures["slip_p"] = slip.change.p
    problems = [slip.summary()] if slip is not None and slip.found else []
    if position > MAX_POSITION_SIGMA or rotation > MAX_ROTATION_SIGMA:
        problems.append(
            f"uncertain by {2e3 * position:.2f} mm and {np.degrees(2 * rotation):.2f} deg (2 sigma); add views, with "
            "larger tilts about several axes"
        )
    if _is_noisy(result.robot_position_noise, result.robot_rotation_noise):
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
