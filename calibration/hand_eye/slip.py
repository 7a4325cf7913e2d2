"""Test whether camera or board moved while the pictures of a hand-eye calibration were taken.

In the linear model of `problem.py`, a camera that moved by delta from some view on adds `G_X delta` to the errors of
these views, and a board that moved adds `G_Y delta`. The errors of the views are weighted by the noise of picture and
arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from calibration.constancy.change_test import Change, assess_change, find_course
from calibration.constancy.linear_model import STEP, STRETCH, Course, LinearModel, courses
from calibration.hand_eye.problem import Row, estimate_noise
from calibration.hand_eye.refinement import HandEyeRefinement

FALSE_ALARMS = 0.01
"""Probability that a recording in which nothing moved is refused."""
_COLUMNS = {"camera": slice(0, 6), "board": slice(6, 12)}
"""Columns of `Row.G` by what may move."""
_LEAST_VARIANCE = 0.1
"""Least variance of the errors over that of picture and arm. Smaller errors are those of perfect data."""


@dataclass(frozen=True, eq=False)
class Slip:
    """Result of the test.

    Attributes:
        change: The best change, significant or not.
        names: Names of all views, in order.
    """

    change: Change
    names: tuple[str, ...]

    @property
    def found(self) -> bool:
        """Whether something moved."""
        return self.change.is_significant(FALSE_ALARMS)

    @property
    def size(self) -> tuple[float, float]:
        """Distance [m] and angle [rad] of the movement."""
        delta = self.change.delta
        return float(np.linalg.norm(delta[:3])), float(np.linalg.norm(delta[3:]))

    @property
    def first(self) -> str:
        """Name of the first view after a step, else of the middle view."""
        change = self.change
        return self.names[change.course.first if change.course.kind == STEP else len(self.names) // 2]

    def summary(self) -> str:
        """Return what moved, when and how far, and what to do about it."""
        change, (distance, angle) = self.change, self.size
        what = " or the ".join(change.causes)
        far = f"{1e3 * distance:.1f} mm and {np.degrees(angle):.2f} deg"
        if change.course.kind == STEP:
            before, after = (self.names[i] for i in change.between)
            text = f"the {what} moved by {far} between {before} and {after}"
            cure = f"fasten it and record again, or fit both parts: --split {self.first}"
        elif change.course.kind == STRETCH:
            first, last = self.names[change.course.first], self.names[change.course.back - 1]
            text = f"the {what} was elsewhere by {far} from about {first} to {last}, and moved back"
            cure = "fasten it and record again, or leave these views out"
        else:
            text = f"the {what} drifted by {far} from {self.names[0]} to {self.names[-1]}"
            cure = "fasten it, let everything warm up, and record again"
        return f"{text} (p = {change.p:.4f}, named below {FALSE_ALARMS}); {cure}"


def find_slip(fit: HandEyeRefinement, names: Sequence[str], times: np.ndarray) -> Slip | None:
    """Test whether camera or board moved.

    Args:
        fit: Refinement as if nothing had moved.
        names: Names of all its views, in order of time.
        times: Their times in any unit, rising, shape (n,).

    Returns:
        The result; None if there are too few views for a test.
    """
    candidates = courses(tuple(_COLUMNS), times)
    noise = fit.position_noise, fit.rotation_noise
    found = find_course(_model(fit, noise), candidates)
    if found is None:
        return None
    # A slip may pass for noise of the arm, which then hides outliers: the noise beside the change selects the views.
    course, keep = found
    rows = [_moving(row, course, h) for row, h in zip(fit.all_rows, course.profile, strict=True)]
    beside = estimate_noise(list(compress(rows, keep)), noise, fit.deviations)
    course, keep = find_course(_model(fit, beside), candidates) or found
    # The test has to weight the views as it would without a change, or it finds changes too often.
    noise = estimate_noise(list(compress(fit.all_rows, keep)), noise, fit.deviations)
    change = assess_change(_model(fit, noise), candidates, course, keep)
    return None if change is None else Slip(change, tuple(names))


def _model(fit: HandEyeRefinement, noise: tuple[float, float]) -> LinearModel:
    """Return the linear model of a refinement's views, weighted for this noise of the arm [m, rad]."""
    rows, lens = fit.all_rows, len(fit.deviations)
    arm = np.diag(np.repeat(np.square(noise), 3))
    whiten = np.linalg.inv(np.linalg.cholesky(np.stack([row.picture for row in rows]) + arm))
    G = whiten @ np.stack([row.G for row in rows])
    e = (whiten @ np.stack([row.e for row in rows])[:, :, None])[:, :, 0]
    prior = np.zeros((lens, G.shape[2]))
    prior[:, G.shape[2] - lens :] = -np.eye(lens)
    causes = {name: -G[:, :, columns] for name, columns in _COLUMNS.items()}
    return LinearModel(-G, e, causes, prior, fit.deviations, _LEAST_VARIANCE)


def _moving(row: Row, course: Course, h: float) -> Row:
    """Return a row whose first columns are those of the change."""
    return replace(row, G=np.column_stack((h * row.G[:, _COLUMNS[course.cause]], row.G)))
