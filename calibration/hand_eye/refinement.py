"""Joint refinement of a hand-eye calibration: reprojection errors, the arm's errors and the lens in one problem.

The noise of the arm is estimated from the data, so that the stated uncertainty is correct. Views that contradict the
rest are left out, the worst first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import chi2

from calibration.camera.lens_prior import LensPrior
from calibration.hand_eye.problem import (
    Guess,
    Row,
    Sighting,
    Solution,
    estimate_noise,
    linearise,
    resized,
    scaled,
    solve,
)
from calibration.result import CameraIntrinsics
from robot_rl.errors import CalibrationError

OUTLIER = float(chi2.ppf(1.0 - 1e-4, 6))
"""Squared distance, in standard deviations, at which a view contradicts the rest: one in 10000 good ones does."""


class HandEyeRefinement:
    """The joint refinement.

    Args:
        lens: Prior of the lens.
        sightings: Views and poses of the arm.
        guess: Start values.
        noise: Standard deviation of the corners [px].
        scale: Whether the size of the board is free.
        keep: Mask of the views to start with, shape (n,); None uses those that agree with the guess.

    Attributes:
        guess: The result.
        keep: Mask of the views in use.
        deviations: Correction of the lens along each of its directions in standard deviations, shape (m,).
        solution: Solution of the linear model around the result, for the views in use.
        rows: Rows of these views.
        all_rows: Rows of all views, also of those that are left out.
        position_noise: Estimated noise of the arm's poses, per axis [m].
        rotation_noise: The same, per axis [rad].
        scale: Estimated size of the board over the stated size.
        scale_sigma: Standard deviation of `scale`.
    """

    def __init__(
        self,
        lens: LensPrior,
        sightings: Sequence[Sighting],
        guess: Guess,
        noise: float,
        *,
        scale: bool,
        keep: np.ndarray | None = None,
    ) -> None:
        self._lens, self._sightings, self._with_scale = lens, list(sightings), scale
        self.guess, self.noise = guess, noise
        self.deviations = np.zeros(lens.directions.shape[1])
        self.scale, self.scale_sigma = 1.0, 0.0
        self.keep = self._agreeing() if keep is None else keep
        self.position_noise, self.rotation_noise = 1e-3, 2e-3

    def run(self) -> HandEyeRefinement:
        """Alternate refinement and selection of the views until the selection does not change.

        Raises:
            CalibrationError: if the views do not determine X and Y, or contradict each other.
        """
        try:
            return self._run()
        except np.linalg.LinAlgError as error:
            raise CalibrationError(
                "the arm's poses and the pictures contradict each other, or do not determine where the camera is; "
                "check that each pose belongs to its picture and that the board stayed; add views with other tilts"
            ) from error

    @property
    def intrinsics(self) -> CameraIntrinsics:
        """The present lens, with the covariance of its prior."""
        return self._lens.moved(self.deviations)

    def corrected_lens(self, rms: float) -> CameraIntrinsics:
        """Return the lens after the fit, with its covariance; `rms` is the reprojection error [px]."""
        return self._lens.corrected(self.deviations, self.solution.covariance[self._rigid :, self._rigid :], rms)

    def _run(self) -> HandEyeRefinement:
        for _ in range(12):
            self._refine()
            rows = self._rows()
            solution = self._estimate([rows[i] for i in np.flatnonzero(self.keep)])
            distances = self._distances(rows, solution)
            keep = self._choose(distances)
            if (keep == self.keep).all():
                break
            self.keep = keep
        if self._with_scale:
            self.scale_sigma = self.scale * float(np.sqrt(solution.covariance[12, 12]))
        self.solution, self.all_rows = solution, rows
        self.rows = [rows[i] for i in np.flatnonzero(self.keep)]
        return self

    def _agreeing(self) -> np.ndarray:
        """Select the views that agree with the first guess about as well as most do."""
        errors = np.array(
            [
                (s.T_base_tcp.inverse() @ self.guess.predict_tcp(T)).vector()
                for s, T in zip(self._sightings, self.guess.boards, strict=True)
            ]
        )
        sizes = np.stack((np.linalg.norm(errors[:, :3], axis=1), np.linalg.norm(errors[:, 3:], axis=1)))
        limits = np.maximum(4.0 * np.median(sizes, axis=1), [1e-3, 2e-3])
        return np.asarray((sizes <= limits[:, None]).all(axis=0))

    def _rows(self) -> list[Row]:
        return linearise(
            self.intrinsics,
            self._sightings,
            self.guess,
            self.noise,
            scale=self._with_scale,
            directions=self._lens.directions,
        )

    def solve(self, rows: Sequence[Row]) -> Solution:
        """Solve the linear model for these views with the estimated noise of the arm."""
        return solve(rows, self.position_noise, self.rotation_noise, self.deviations)

    def _refine(self) -> None:
        """Iterate Gauss-Newton steps on X, Y (and the scale), the lens and the pose of every view."""
        for _ in range(10):
            rows = self._rows()
            chosen = [rows[i] for i in np.flatnonzero(self.keep)]
            solution = self._estimate(chosen)
            d = [self._pose_step(*pair, solution) for pair in zip(rows, self.keep, strict=True)]
            self.guess = self.guess.moved(solution.z, d)
            if self._with_scale:
                self._resize(1.0 + float(solution.z[12]))
            self.deviations = self.deviations + solution.z[self._rigid :]
            if np.abs(solution.z[: self._rigid]).max() < 1e-8:
                return

    @property
    def _rigid(self) -> int:
        """Number of unknowns before those of the lens."""
        return 12 + int(self._with_scale)

    def _resize(self, factor: float) -> None:
        """Scale the board and its distance by the same factor: the pictures stay the same."""
        self.scale *= factor
        self._sightings = [resized(sighting, factor) for sighting in self._sightings]
        self.guess = replace(self.guess, boards=tuple(scaled(T, factor) for T in self.guess.boards))

    def _pose_step(self, row: Row, kept: bool, solution: Solution) -> np.ndarray:
        """Return the step of a view's pose, from picture and arm; from the picture alone if the view is left out."""
        alone = row.d + row.by_lens @ solution.z[self._rigid :]
        if not kept:
            return alone
        left = row.e + row.G @ solution.z
        return alone - row.H_inverse @ row.by_pose.T @ np.linalg.solve(row.picture + self._arm(), left)

    def _arm(self) -> np.ndarray:
        return np.diag(np.repeat([self.position_noise**2, self.rotation_noise**2], 3))

    def _estimate(self, rows: Sequence[Row]) -> Solution:
        """Estimate the arm's noise, and return the solution with it."""
        start = self.position_noise, self.rotation_noise
        self.position_noise, self.rotation_noise = estimate_noise(rows, start, self.deviations)
        return self.solve(rows)

    def _distances(self, rows: Sequence[Row], solution: Solution) -> np.ndarray:
        """Return the squared distances of the views from the fit, in standard deviations, shape (n,)."""
        distances = []
        for row, kept in zip(rows, self.keep, strict=True):
            left = row.e + row.G @ solution.z
            spread = row.G @ solution.covariance @ row.G.T
            S = row.picture + self._arm() + (-spread if kept else spread)
            distances.append(float(left @ np.linalg.solve(S, left)))
        return np.array(distances)

    def _choose(self, distances: np.ndarray) -> np.ndarray:
        """Leave out the worst view if it contradicts the rest, else restore views that no longer do."""
        worst = np.where(self.keep, distances, -np.inf).argmax()
        keep = self.keep.copy()
        if distances[worst] > OUTLIER:
            keep[worst] = False
        else:
            keep |= distances <= 0.5 * OUTLIER  # a hysteresis, so that the selection converges
        return keep
