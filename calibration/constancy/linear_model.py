"""A linear model of a recording, one block of rows per pose in order of time, and what may change in it.

    y_i = A_i x + h_i D_i delta + noise of variance s^2

A cause has its own D, e.g. the derivative by the pose of the camera. A course h is how the change goes on over time: a
step between two poses, a step and back, a drift, or a drift that settles, as of a sensor that warms up. A fault is
there throughout, e.g. a wrong gain: h is 1. Without a change or fault, delta is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

STEP, STRETCH, DRIFT, SETTLING, THROUGHOUT = "step", "step and back", "drift", "settling drift", "fault throughout"
MIN_PART = 2
"""Least number of poses before and after a step: a single pose that differs is an outlier."""
_LEAST_STRETCH = 3
"""Least number of poses between a step and the step back."""
_MOST_TURNS = 12
"""Largest number of moments that a step and the step back are tried at: their pairs take time."""
_SETTLING = 4.0
"""Time constants of a settling drift that the recording lasts."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """The model without a change, and the possible causes of one.

    Attributes:
        A: Derivatives by what is constant, in standard deviations of y, shape (n, b, p).
        y: Observations in their standard deviations, up to a common factor, shape (n, b).
        causes: D by the name of the cause, each of shape (n, b, q).
        prior: Prior knowledge of x as further rows of A, in standard deviations, shape (m, p).
        prior_y: Their observations, shape (m,).
        least_variance: Least variance of the noise that is credible: below it errors are those of arithmetic.
    """

    A: np.ndarray
    y: np.ndarray
    causes: Mapping[str, np.ndarray]
    prior: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    prior_y: np.ndarray = field(default_factory=lambda: np.zeros(0))
    least_variance: float = 0.0

    def only(self, keep: np.ndarray) -> LinearModel:
        """Return the model of some of the poses."""
        return replace(self, A=self.A[keep], y=self.y[keep], causes={name: D[keep] for name, D in self.causes.items()})

    def changing(self, change: Course) -> LinearModel:
        """Return the model in which delta of a change is unknown, too: its columns are the last."""
        D = change.profile[:, None, None] * self.causes[change.cause]
        prior = np.hstack((self.prior_rows, np.zeros((len(self.prior_y), D.shape[2]))))
        return replace(self, A=np.concatenate((self.A, D), axis=2), causes={}, prior=prior)

    @property
    def prior_rows(self) -> np.ndarray:
        """The prior with as many columns as A, shape (m, p)."""
        return self.prior if len(self.prior_y) else np.zeros((0, self.A.shape[2]))

    def stacked(self) -> tuple[np.ndarray, np.ndarray]:
        """Return A and y as one matrix and vector, the prior last. Shapes (n b + m, p) and (n b + m,)."""
        return (
            np.vstack((self.A.reshape(-1, self.A.shape[2]), self.prior_rows)),
            np.concatenate((self.y.ravel(), self.prior_y)),
        )


@dataclass(frozen=True, eq=False)
class Course:
    """A possible change: its cause, and how it goes on.

    Attributes:
        cause: Key of `LinearModel.causes`.
        kind: `STEP`, `STRETCH`, `DRIFT`, `SETTLING` or `THROUGHOUT`.
        profile: h of each pose, from 0 to 1, shape (n,).
    """

    cause: str
    kind: str
    profile: np.ndarray

    @property
    def first(self) -> int:
        """Index of the first pose after a step."""
        return int(self.profile.argmax())

    @property
    def back(self) -> int:
        """Index of the first pose after the step back; the number of poses if there is none."""
        return int(np.flatnonzero(self.profile)[-1]) + 1

    def only(self, keep: np.ndarray) -> Course:
        """Return the course over some of the poses."""
        return replace(self, profile=self.profile[keep])

    def is_testable(self) -> bool:
        """Return whether there are poses enough on both sides of a step."""
        after, least = int(self.profile.sum()), _LEAST_STRETCH if self.kind == STRETCH else MIN_PART
        return self.kind not in (STEP, STRETCH) or least <= after <= len(self.profile) - MIN_PART


def courses(causes: Sequence[str], times: np.ndarray, faults: Sequence[str] = ()) -> list[Course]:
    """List the changes and faults that can be tested.

    Args:
        causes: Names of the causes of changes.
        times: Time of each pose in any unit, rising, shape (n,).
        faults: Names of the causes that are there throughout.
    """
    n, passed = len(times), (times - times[0]) / max(float(times[-1] - times[0]), 1e-300)
    profiles = [(STEP, (np.arange(n) >= first).astype(float)) for first in range(MIN_PART, n - MIN_PART + 1)]
    profiles += [(DRIFT, passed), (SETTLING, -np.expm1(-_SETTLING * passed) / -np.expm1(-_SETTLING))]
    turns = np.unique(np.rint(np.linspace(MIN_PART, n - MIN_PART, _MOST_TURNS)).astype(int)).tolist()
    profiles += [
        (STRETCH, ((np.arange(n) >= first) & (np.arange(n) < back)).astype(float))
        for first, back in combinations(turns, 2)
        if back - first >= _LEAST_STRETCH
    ]
    changes = [Course(cause, kind, profile) for cause in causes for kind, profile in profiles]
    return changes + [Course(fault, THROUGHOUT, np.ones(n)) for fault in faults]
