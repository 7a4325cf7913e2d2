"""Test for a change during a recording: when, by how much, and how often chance alone looks like it.

The statistic is the least p-value of the F-tests of all courses, each against no change. An F-test needs no knowledge
of the noise's size. Chance has many courses to choose from, so the p-value of the whole is not that of the best course:
it is the share of recordings of normal noise, with the same poses, whose statistic is as small (Monte Carlo test;
Davison and Hinkley 1997, 4.2; on changes at an unknown time: Andrews 1993). For normal noise without outliers a test at
level a names a recording without a change with probability a.

`find_course` looks for the best course by a robust fit, and leaves out the poses that contradict the rest even then. A
pose that contradicts the rest only if there is no change stays: after a large step, half of all poses do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import fdtrc
from scipy.stats import chi2

from calibration.constancy.linear_model import STEP, Course, LinearModel

_DRAWS = 2000
"""Recordings of noise for the p-value: 0.01 is known to 0.002."""
_OUTLIER = 1e-4
"""Share of correct poses that are taken for outliers."""
_HUBER = 1.345
_MOST = 2 / 3
"""Least share of poses that agree with a change: what fewer explain is no explanation."""
_MIN_FREEDOM = 6
"""Least degrees of freedom that are left for the noise."""
_LIKELY = float(chi2.ppf(0.95, 2))
"""Courses whose squared errors, over the variance, are within this of the best explain a recording about as well."""


@dataclass(frozen=True, eq=False)
class Change:
    """The change that explains a recording best, significant or not.

    Attributes:
        course: Cause and course, over all poses.
        keep: Mask of the poses that are no outliers, shape (n,).
        p: Probability of a statistic as small without any change.
        delta: Size of the change at the end, shape (q,).
        covariance: Its covariance, shape (q, q).
        causes: Causes that explain the recording about as well, the best first.
        between: For a step, indices of the poses between which it lies: the last before it and the first after it.
        sizes: Root mean square error of each pose in standard deviations, without the change and with it, shape (n, 2).
    """

    course: Course
    keep: np.ndarray
    p: float
    delta: np.ndarray
    covariance: np.ndarray
    causes: tuple[str, ...]
    between: tuple[int, int]
    sizes: np.ndarray

    def is_significant(self, level: float) -> bool:
        """Return whether chance looks like this with at most probability `level`, and most poses agree with it."""
        return self.p <= level and float(self.keep.mean()) >= _MOST


def find_course(model: LinearModel, candidates: Sequence[Course]) -> tuple[Course, np.ndarray] | None:
    """Find the course that explains a recording best, and the poses that are no outliers then.

    Args:
        model: The recording.
        candidates: Courses to choose from.

    Returns:
        Course and mask, shape (n,); None if no course can be tested.
    """
    size = model.y.shape[1]
    if not candidates:
        return None
    squares = _robust_squares([model.changing(course) for course in candidates])
    # The median square of a normal vector, corrected for what the fit takes.
    freedom = 1.0 - model.A.shape[2] / model.y.size
    typical = min(float(np.median(s)) for s in squares) / (float(chi2.median(size)) * max(freedom, 0.1))
    limit = max(typical, model.least_variance, 1e-300) * float(chi2.ppf(1.0 - _OUTLIER, size))
    for i in np.argsort([np.minimum(s, limit).sum() for s in squares], kind="stable"):
        course = candidates[i]
        keep = _without_outliers(model.changing(course), squares[i] <= limit)
        if course.only(keep).is_testable():
            return course, keep
    return None


def assess_change(model: LinearModel, candidates: Sequence[Course], course: Course, keep: np.ndarray) -> Change | None:
    """Compare the best course with chance.

    Args:
        model: The recording.
        candidates: The courses that chance may choose from.
        course: The best of them.
        keep: Mask of the poses to use, shape (n,).

    Returns:
        The change; None if there are too few poses for a test.
    """
    used = model.only(keep)
    testable = [c for c in candidates if c.only(keep).is_testable()]
    A, y = used.stacked()
    rest = _complement(A)
    bases = [_basis(used, c.only(keep), rest) for c in testable]
    freedom = rest.shape[1] - max(U.shape[1] for U in bases)
    if freedom < _MIN_FREEDOM:
        return None
    left = rest.T @ y
    observed = _least_p(bases, left[:, None], model.least_variance)[0]
    noise = np.random.default_rng(0).standard_normal((rest.shape[1], _DRAWS))
    p = (1 + int((_least_p(bases, noise) <= observed).sum())) / (1 + _DRAWS)

    remaining = left @ left - np.array([float(((U.T @ left) ** 2).sum()) for U in bases])
    best = min(r for c, r in zip(testable, remaining, strict=True) if c is course)
    near = [c for c, r in zip(testable, remaining, strict=True) if r - best <= _LIKELY * max(best, 0.0) / freedom]
    weights, q = keep.astype(float), model.causes[course.cause].shape[2]
    without, fit = _Fit(model, weights), _Fit(model.changing(course), weights)
    variance = best / freedom
    errors = np.stack([without.errors, fit.errors], axis=2)
    return Change(
        course=course,
        keep=keep,
        p=p,
        delta=fit.x[-q:],
        covariance=variance * fit.inverse[-q:, -q:],
        causes=(course.cause, *sorted({c.cause for c in near} - {course.cause})),
        between=_between([course, *(c for c in near if c.cause == course.cause)], keep),
        sizes=np.sqrt((errors**2).mean(axis=1) / max(variance, model.least_variance, 1e-300)),
    )


class _Fit:
    """Least squares of a model, weighted by pose, or of several that differ in A, at once.

    Args:
        model: The model, or one of several.
        weights: Shape (n,), of several (models, n).
        A: Those of several models, shape (models, n, b, p).
    """

    def __init__(self, model: LinearModel, weights: np.ndarray, A: np.ndarray | None = None) -> None:
        A, prior = model.A if A is None else A, model.prior_rows
        rows = A.reshape(*A.shape[:-3], -1, A.shape[-1])
        weighted = np.swapaxes(rows * np.repeat(weights, A.shape[-2], axis=-1)[..., None], -1, -2)
        normal = weighted @ rows + prior.T @ prior
        slope = weighted @ model.y.ravel() + prior.T @ model.prior_y
        # The unknowns have different units.
        unit = 1.0 / np.sqrt(np.maximum(np.diagonal(normal, axis1=-2, axis2=-1), 1e-300))
        scale = unit[..., :, None] * unit[..., None, :]
        self.inverse = np.linalg.pinv(normal * scale, 1e-12, hermitian=True) * scale
        self.x = (self.inverse @ slope[..., None])[..., 0]
        self.errors = model.y - (rows @ self.x[..., None]).reshape(A.shape[:-1])


def _robust_squares(models: Sequence[LinearModel]) -> list[np.ndarray]:
    """Return the squared errors of each pose after a fit with Huber's weights, shape (n,), for each model."""
    answer = [np.zeros(0)] * len(models)
    size = models[0].y.shape[1]
    typical = float(chi2.median(size)) / size
    for p in {model.A.shape[2] for model in models}:
        alike = [i for i, model in enumerate(models) if model.A.shape[2] == p]
        A = np.stack([models[i].A for i in alike])
        weights = np.ones(A.shape[:2])
        for _ in range(8):
            squares = (_Fit(models[alike[0]], weights, A).errors ** 2).sum(axis=2)
            relative = squares / np.maximum(np.median(squares, axis=1, keepdims=True), 1e-300) * typical
            weights = np.minimum(1.0, _HUBER / np.sqrt(np.maximum(relative, 1e-12)))
        for i, found in zip(alike, squares, strict=True):
            answer[i] = found
    return answer


def _without_outliers(model: LinearModel, keep: np.ndarray) -> np.ndarray:
    """Leave out the worst pose while it contradicts the rest, and restore poses that no longer do. Shape (n,)."""
    size, limit = model.y.shape[1], float(chi2.ppf(1.0 - _OUTLIER, model.y.shape[1]))
    for _ in range(2 * len(keep)):
        freedom = int(keep.sum()) * size + len(model.prior_y) - model.A.shape[2]
        if freedom < _MIN_FREEDOM:
            break
        fit = _Fit(model, keep.astype(float))
        variance = max(float((fit.errors[keep] ** 2).sum()) / freedom, model.least_variance, 1e-300)
        spread = model.A @ fit.inverse @ np.swapaxes(model.A, 1, 2)
        S = np.eye(size) * (1.0 + 1e-6) + np.where(keep, -1.0, 1.0)[:, None, None] * spread
        distances = np.einsum("ni,ni->n", fit.errors, np.linalg.solve(S, fit.errors[:, :, None])[:, :, 0]) / variance
        worst = int(np.where(keep, distances, -np.inf).argmax())
        new = keep.copy()
        if distances[worst] > limit:
            new[worst] = False
        else:
            new |= distances <= 0.5 * limit  # a hysteresis, so that the selection converges
        if (new == keep).all():
            break
        keep = new
    return keep


def _complement(A: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of what the columns of A cannot explain, shape (rows, rows - rank)."""
    U, singular, _ = np.linalg.svd(A / np.maximum(np.linalg.norm(A, axis=0), 1e-300), full_matrices=True)
    rank = int((singular > 1e-9 * singular[0]).sum())
    return np.asarray(U[:, rank:])


def _basis(model: LinearModel, course: Course, rest: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of what a change explains beyond the model, in coordinates of `rest`."""
    D = course.profile[:, None, None] * model.causes[course.cause]
    columns = D.reshape(-1, D.shape[2])
    columns = columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    U, singular, _ = np.linalg.svd(rest[: len(columns)].T @ columns, full_matrices=False)
    return np.asarray(U[:, singular > 1e-6])


def _least_p(bases: Sequence[np.ndarray], left: np.ndarray, least_variance: float = 0.0) -> np.ndarray:
    """Return the least p-value of the F-tests of all courses, shape (recordings,).

    Among courses with as many unknowns, it is that of the one which explains most.

    Args:
        bases: What each course explains.
        left: Recordings without what is constant, shape (rows, recordings).
        least_variance: See `LinearModel`.
    """
    rows, total = len(left), (left**2).sum(axis=0)
    least = np.ones(left.shape[1])
    for q in {U.shape[1] for U in bases} - {0}:
        alike = np.concatenate([U.T for U in bases if U.shape[1] == q])
        explained = ((alike @ left) ** 2).reshape(-1, q, left.shape[1]).sum(axis=1).max(axis=0)
        variance = np.maximum((total - explained) / (rows - q), max(least_variance, 1e-300))
        least = np.minimum(least, fdtrc(q, rows - q, explained / q / variance))
    return least


def _between(steps: Sequence[Course], keep: np.ndarray) -> tuple[int, int]:
    """Return the last pose before all of the steps and the first after all of them, outliers excepted."""
    firsts = [step.first for step in steps if step.kind == STEP] or [0]
    used = np.flatnonzero(keep)
    before, after = used[used < min(firsts)], used[used >= max(firsts)]
    return int(before[-1]) if len(before) else 0, int(after[0]) if len(after) else int(used[-1])
