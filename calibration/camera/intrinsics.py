"""Calibration of a camera's intrinsics from pictures of a board, with the uncertainty of every number.

Bundle adjustment fits all parameters of the camera and the pose of the board in every view together, for any model of
`calibration.result.lens`. Corners and views that do not fit are left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.camera.board_pose import ROUGHLY, ViewTerms, board_pose, step, view_terms, weighted_product
from calibration.camera.view import MIN_CORNERS, BadViewError, BoardView
from calibration.result import CameraIntrinsics, Quality
from calibration.result.lens import COEFFICIENTS, by_coefficients, distort
from calibration.result.reasons import reasons
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose


def parameter_derivative(intrinsics: CameraIntrinsics, points: np.ndarray) -> np.ndarray:
    """Return the derivative of the pixels by (fx, fy, cx, cy, *distortion).

    Args:
        intrinsics: Camera and lens.
        points: Points in the optical frame [m], shape (n, 3).

    Returns:
        Shape (n, 2, 4 + number of distortion coefficients).
    """
    k = np.array(intrinsics.distortion)
    plane, _ = distort(intrinsics.model, k, points)
    by_focal = plane[:, :, None] * np.eye(2)
    by_center = np.broadcast_to(np.eye(2), (len(points), 2, 2))
    focal = np.array([[intrinsics.fx], [intrinsics.fy]])
    return np.concatenate((by_focal, by_center, focal * by_coefficients(intrinsics.model, k, points)), axis=2)


MIN_VIEWS = 8
MAX_FOCAL_SIGMA, MAX_CENTER_SIGMA = 1.5e-3, 1.0
"""Largest accepted standard deviation: of the focal length, relative, and of the principal point [px]."""
MIN_TILT = np.radians(10.0)
"""Spread of the board's directions below which focal length and distance cannot be separated [rad]."""
MAX_REJECTED = 0.34
"""Largest share of the views that may be left out."""
_DISTORTION_PRIOR = 1.0
"""Prior standard deviation of distortion coefficients. Real lenses stay well below; without a prior, the numerator and
denominator of the rational model may grow together without bound."""
_FOCAL_GUESSES = sorted(np.geomspace(0.25, 3.0, 14).tolist(), key=lambda factor: abs(np.log(factor)))
"""Start values of the focal length, in widths of the picture, the usual ones first."""


@dataclass(frozen=True, eq=False)
class IntrinsicsFit:
    """A calibration of intrinsics and everything that its report shows.

    Attributes:
        result: The content of the result file.
        quality: Whether the result is good enough to be used.
        views: The views in use, with the corners in use.
        boards: T_camera_board of each view.
        errors: Measured minus projected pixels of each view, shape (n, 2).
    """

    result: CameraIntrinsics
    quality: Quality
    views: tuple[BoardView, ...]
    boards: tuple[Pose, ...]
    errors: tuple[np.ndarray, ...]


def calibrate_intrinsics(
    views: Sequence[BoardView],
    camera: str,
    model: str = "rational_polynomial",
    *,
    rejected: Mapping[str, str] | None = None,
    start: CameraIntrinsics | None = None,
) -> IntrinsicsFit:
    """Fit a camera model to views of a board.

    Args:
        views: Pictures of one board.
        camera: Name or serial number of the camera.
        model: Key of `calibration.result.lens.COEFFICIENTS`.
        rejected: Pictures that were rejected before, and why; they are recorded.
        start: Start values, e.g. a fit of fewer views; None searches for them.

    Raises:
        CalibrationError: if there are too few views, they have several sizes, or no camera fits them.
    """
    left_out = dict(rejected or {})
    _check_sizes(views)
    if len(views) < MIN_VIEWS:
        raise CalibrationError(
            f"{len(views)} usable views, needed are {MIN_VIEWS}, better 25"
            + (f"; rejected: {'; '.join(reasons(left_out))}" if left_out else "")
        )
    total = len(views)
    noise = 0.5  # [px]; the initial value
    intrinsics = start or _start(views, camera, model, noise)
    try:
        boards = [board_pose(intrinsics, view, noise)[0] for view in views]
    except BadViewError as error:
        raise CalibrationError("no camera fits these views; check that all show the same board") from error
    kept = list(views)
    for _ in range(6):
        intrinsics, boards, terms, covariance = _adjust(intrinsics, kept, boards, noise)
        noise = _noise(terms, len(intrinsics.vector))
        kept, boards, changed = _leave_out(kept, boards, terms, left_out)
        if len(kept) < max(MIN_VIEWS, (1.0 - MAX_REJECTED) * total):
            raise CalibrationError(
                f"only {len(kept)} of {total} views fit one camera and one board: {'; '.join(reasons(left_out))}"
            )
        if not changed:
            break
    intrinsics, boards, terms, covariance = _adjust(intrinsics, kept, boards, noise)
    result = replace(intrinsics, covariance=tuple(map(tuple, covariance.tolist())), rms=_rms(terms))
    quality = _assess_quality(result, kept, boards, terms, left_out)
    return IntrinsicsFit(result, quality, tuple(kept), tuple(boards), tuple(t.errors for t in terms))


def tilt_spread(boards: Sequence[Pose]) -> float:
    """Return the root mean square angle between the board's normal in the camera's frame and its mean [rad]."""
    normals = np.array([T.matrix[:, 2] for T in boards])
    mean = normals.mean(axis=0)
    return float(np.sqrt(np.mean(np.arccos(np.clip(normals @ mean / np.linalg.norm(mean), -1.0, 1.0)) ** 2)))


def coverage(views: Sequence[BoardView], columns: int = 8, rows: int = 6) -> np.ndarray:
    """Count the corners in each cell of a grid over the picture, shape (rows, columns)."""
    width, height = views[0].size
    pixels = np.concatenate([view.pixels for view in views]) + 0.5
    counts, _, _ = np.histogram2d(pixels[:, 1], pixels[:, 0], (rows, columns), ((0, height), (0, width)))
    return counts.astype(int)


def _check_sizes(views: Sequence[BoardView]) -> None:
    sizes = sorted({view.size for view in views})
    if len(sizes) > 1:
        counts = ", ".join(f"{sum(v.size == size for v in views)} of {size[0]} x {size[1]} px" for size in sizes)
        raise CalibrationError(f"the pictures have several resolutions: {counts}; intrinsics belong to one, sort them")


def _start(views: Sequence[BoardView], camera: str, model: str, noise: float) -> CameraIntrinsics:
    """Find the camera without distortion that fits a few views best, over a range of focal lengths."""
    width, height = views[0].size
    few = [views[i] for i in np.unique(np.linspace(0, len(views) - 1, MIN_VIEWS).astype(int))]
    best: tuple[float, CameraIntrinsics] | None = None
    for factor in _FOCAL_GUESSES:
        f = factor * width
        guess = CameraIntrinsics(
            camera, width, height, model, f, f, (width - 1) / 2, (height - 1) / 2, (0.0,) * COEFFICIENTS[model]
        )
        cost = 0.0
        try:
            for view in few:
                cost += board_pose(guess, view, noise, ROUGHLY)[1].cost
                if best is not None and cost >= best[0]:
                    break
            else:
                best = cost, guess
        except BadViewError:
            continue
    if best is None:
        raise CalibrationError("no camera fits these views; check that all show the same board")
    return best[1]


def _adjust(
    intrinsics: CameraIntrinsics, views: Sequence[BoardView], boards: Sequence[Pose], noise: float
) -> tuple[CameraIntrinsics, list[Pose], list[ViewTerms], np.ndarray]:
    """Minimise over camera and poses by Levenberg and Marquardt; Schur's complement eliminates the poses.

    Returns:
        The camera, the poses, the terms of each view, and the covariance of the camera's numbers.
    """
    damping = 1e-3
    state = _State(intrinsics, list(boards), views, noise)
    for _ in range(100):
        new = state.moved(damping)
        if new is None or not new.cost < state.cost:
            damping *= 10.0
            if damping > 1e10:
                break
            continue
        converged = state.cost - new.cost < 1e-9 * state.cost
        state, damping = new, max(damping / 10.0, 1e-12)
        if converged:
            break
    schur, _, _ = state.normal(0.0)
    try:
        unit = 1.0 / np.sqrt(np.diag(schur))
        covariance = np.linalg.inv(schur * np.outer(unit, unit)) * np.outer(unit, unit)
    except np.linalg.LinAlgError as error:
        raise CalibrationError(f"these views do not determine the camera; {_ADVICE}") from error
    return state.intrinsics, state.boards, state.terms, covariance


_ADVICE = "add views with the board tilted by 20 to 40 deg to all sides, near and far, out to the edges of the picture"


class _State:
    """A camera, poses, and the terms of all views there."""

    def __init__(
        self, intrinsics: CameraIntrinsics, boards: list[Pose], views: Sequence[BoardView], noise: float
    ) -> None:
        self.intrinsics, self.boards, self._views, self._noise = intrinsics, boards, views, noise
        self.terms = [view_terms(intrinsics, v, T, noise) for v, T in zip(views, boards, strict=True)]
        self._prior = np.concatenate((np.zeros(4), np.full(len(intrinsics.distortion), _DISTORTION_PRIOR**-2)))
        self.cost = sum(t.cost for t in self.terms) + 0.5 * float(self._prior @ intrinsics.vector**2)

    def normal(self, damping: float) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
        """Return the normal equations of the camera without the poses, and for each pose `H^-1 g` and `H^-1 B^T`."""
        A, b = np.diag(self._prior), -self._prior * self.intrinsics.vector
        poses, reduced, correction = [], np.zeros_like(A), np.zeros_like(b)
        for view, T, terms in zip(self._views, self.boards, self.terms, strict=True):
            J = parameter_derivative(self.intrinsics, view.points @ T.matrix.T + T.position)
            A += weighted_product(terms.weights, J, J)
            b += weighted_product(terms.weights, J, terms.errors[:, :, None])[:, 0]
            B = weighted_product(terms.weights, J, terms.J)
            H = terms.H + damping * np.diag(np.diag(terms.H))
            step_alone, coupling = np.linalg.solve(H, terms.g), np.linalg.solve(H, B.T)
            reduced += B @ coupling
            correction += B @ step_alone
            poses.append((step_alone, coupling))
        return A + damping * np.diag(np.diag(A)) - reduced, b - correction, poses

    def moved(self, damping: float) -> _State | None:
        """Return the state after one step; None if its parameters are not those of a camera."""
        schur, b, poses = self.normal(damping)
        try:
            change = np.linalg.solve(schur, b)
        except np.linalg.LinAlgError:
            return None
        vector = self.intrinsics.vector + change
        if not np.isfinite(vector).all() or min(vector[:2]) <= 0.0:
            return None
        intrinsics = self.intrinsics.with_vector(vector)
        boards = [step(alone - coupling @ change) @ T for (alone, coupling), T in zip(poses, self.boards, strict=True)]
        new = _State(intrinsics, boards, self._views, self._noise)
        return new if np.isfinite(new.cost) else None


def _rms(terms: Sequence[ViewTerms]) -> float:
    return float(np.sqrt(np.mean(np.concatenate([t.errors for t in terms]) ** 2)))


def _noise(terms: Sequence[ViewTerms], parameters: int) -> float:
    """Return the standard deviation of a corner's coordinate, without outliers [px]."""
    errors = np.concatenate([t.errors for t in terms])
    rough = 1.4826 * float(np.median(np.abs(errors)))
    clear = np.linalg.norm(errors, axis=1) < 5.0 * rough
    freedom = max(2 * clear.sum() - 6 * len(terms) - parameters, 1)
    return max(float(np.sqrt((errors[clear] ** 2).sum() / freedom)), 0.01)


def _leave_out(
    views: Sequence[BoardView], boards: Sequence[Pose], terms: Sequence[ViewTerms], rejected: dict[str, str]
) -> tuple[list[BoardView], list[Pose], bool]:
    """Leave out misplaced corners, and views that fit worse than the others."""
    spreads = np.array([np.median(np.linalg.norm(t.errors, axis=1)) for t in terms])
    typical = float(np.median(spreads))
    limit = max(6.0 * typical, 0.3)  # [px]; a Rayleigh variable exceeds 6 medians once in 10^11
    kept, poses, changed = [], [], False
    for view, T, t, spread in zip(views, boards, terms, spreads, strict=True):
        good = np.linalg.norm(t.errors, axis=1) <= limit
        if spread > max(3.0 * typical, 0.2):
            rejected[view.name] = f"fits worse than the others: {spread:.2f} px, the median is {typical:.2f} px"
        elif good.sum() < max(MIN_CORNERS, 0.7 * len(good)):
            rejected[view.name] = f"has {len(good) - good.sum()} of {len(good)} corners in wrong places"
        else:
            kept.append(view.only(good))
            poses.append(T)
            changed |= not good.all()
            continue
        changed = True
    return kept, poses, changed


def _assess_quality(
    result: CameraIntrinsics,
    views: Sequence[BoardView],
    boards: Sequence[Pose],
    terms: Sequence[ViewTerms],
    rejected: dict[str, str],
) -> Quality:
    sigma = np.sqrt(np.diag(np.array(result.covariance)))
    focal = float(max(sigma[0] / result.fx, sigma[1] / result.fy))
    center = float(max(sigma[2:4]))
    tilt, cells = tilt_spread(boards), coverage(views) > 0
    per_view = [float(np.sqrt(np.mean(t.errors**2))) for t in terms]
    figures = {
        "views": float(len(views)),
        "views_rejected": float(len(rejected)),
        "corners": float(sum(len(view.ids) for view in views)),
        "rms_px": result.rms,
        "worst_view_rms_px": max(per_view),
        "sigma_focal_percent": 100 * focal,
        "sigma_center_px": center,
        "tilt_spread_deg": float(np.degrees(tilt)),
        "coverage_percent": 100 * float(cells.mean()),
    }
    problems = []
    if tilt < MIN_TILT:
        problems.append(
            f"the views are alike: the board's direction varies by {np.degrees(tilt):.1f} deg only, needed are "
            f"{np.degrees(MIN_TILT):.0f}"
        )
    if focal > MAX_FOCAL_SIGMA:
        problems.append(f"the focal length is uncertain by {200 * focal:.2f} % (2 sigma)")
    if center > MAX_CENTER_SIGMA:
        problems.append(f"the principal point is uncertain by {2 * center:.1f} px (2 sigma)")
    if problems:
        return Quality(False, f"{'; '.join(problems)}; {_ADVICE}", figures, rejected)
    verdict = (
        f"good: focal length known to {200 * focal:.2f} %, principal point to {2 * center:.2f} px (2 sigma), "
        f"reprojection error {result.rms:.3f} px over {100 * cells.mean():.0f} % of the picture"
    )
    return Quality(True, verdict, figures, rejected)
