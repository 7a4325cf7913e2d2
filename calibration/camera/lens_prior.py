"""Prior of a lens from an earlier calibration, for a fit that may correct the lens within its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration.result import CameraIntrinsics

_LEAST = 1e-12
"""Variance, relative to the largest, below which a direction is exactly known: rounding of the covariance."""


@dataclass(frozen=True, eq=False)
class LensPrior:
    """A lens and the directions in which it is uncertain.

    Attributes:
        intrinsics: The most likely parameters.
        directions: Changes of `intrinsics.vector` of one standard deviation each, independent of each other, shape
            (parameters, m). m is 0 if the covariance is not known: the lens is then fixed.
    """

    intrinsics: CameraIntrinsics
    directions: np.ndarray

    @classmethod
    def from_intrinsics(cls, intrinsics: CameraIntrinsics) -> LensPrior:
        """Make the prior of intrinsics with their covariance."""
        sigma = intrinsics.sigma
        if sigma is None:
            return cls(intrinsics, np.zeros((len(intrinsics.vector), 0)))
        unit = np.where(sigma > 0.0, sigma, 1.0)  # pixels and coefficients differ by orders of magnitude
        variances, axes = np.linalg.eigh(np.array(intrinsics.covariance) / np.outer(unit, unit))
        free = variances > _LEAST * variances.max(initial=0.0)
        return cls(intrinsics, unit[:, None] * axes[:, free] * np.sqrt(variances[free]))

    def moved(self, deviations: np.ndarray) -> CameraIntrinsics:
        """Return the lens that is this many standard deviations away along each direction, shape (m,)."""
        return self.intrinsics.with_vector(self.intrinsics.vector + self.directions @ deviations)

    def corrected(self, deviations: np.ndarray, covariance: np.ndarray, rms: float) -> CameraIntrinsics:
        """Return the lens after a fit.

        Args:
            deviations: Result of the fit in standard deviations, shape (m,).
            covariance: Covariance of the deviations, shape (m, m).
            rms: Reprojection error of the fit [px].
        """
        if self.directions.shape[1] == 0:
            return replace(self.intrinsics, rms=rms)
        C = self.directions @ covariance @ self.directions.T
        return replace(self.moved(deviations), covariance=tuple(map(tuple, C.tolist())), rms=rms)
