"""What an earlier calibration knows of a lens, for a fit that may correct the lens within that."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration.result import CameraIntrinsics

_LEAST = 1e-12
"""Variance, relative to the largest, below which a direction counts as known exactly: rounding of the covariance."""


@dataclass(frozen=True, eq=False)
class LensPrior:
    """A lens and how it may differ from what was calibrated.

    Attributes:
        intrinsics: The most likely numbers.
        directions: Changes of `intrinsics.vector` of one standard deviation each, independent of each other, shape
            (numbers, m). m is 0 if the covariance is not known: the lens is then taken as given.
    """

    intrinsics: CameraIntrinsics
    directions: np.ndarray

    @classmethod
    def from_intrinsics(cls, intrinsics: CameraIntrinsics) -> LensPrior:
        """What intrinsics with their covariance say."""
        sigma = intrinsics.sigma
        if sigma is None:
            return cls(intrinsics, np.zeros((len(intrinsics.vector), 0)))
        unit = np.where(sigma > 0.0, sigma, 1.0)  # pixels and coefficients differ by orders of magnitude
        variances, axes = np.linalg.eigh(np.array(intrinsics.covariance) / np.outer(unit, unit))
        free = variances > _LEAST * variances.max(initial=0.0)
        return cls(intrinsics, unit[:, None] * axes[:, free] * np.sqrt(variances[free]))

    def moved(self, deviations: np.ndarray) -> CameraIntrinsics:
        """The lens that is so many standard deviations away along each direction, shape (m,)."""
        return self.intrinsics.with_vector(self.intrinsics.vector + self.directions @ deviations)

    def corrected(self, deviations: np.ndarray, covariance: np.ndarray, rms: float) -> CameraIntrinsics:
        """The lens after a fit.

        Args:
            deviations: What the fit found, shape (m,).
            covariance: Of the deviations, shape (m, m).
            rms: Reprojection error of the fit [px].
        """
        if self.directions.shape[1] == 0:
            return replace(self.intrinsics, rms=rms)
        C = self.directions @ covariance @ self.directions.T
        return replace(self.moved(deviations), covariance=tuple(map(tuple, C.tolist())), rms=rms)
