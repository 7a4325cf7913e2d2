"""Validation of covariance matrices in results."""

from __future__ import annotations

import numpy as np

Matrix = tuple[tuple[float, ...], ...]
"""A matrix as a tuple of its rows, as it is written to a file."""
_TOLERANCE = 1e-6
"""Largest asymmetry and smallest eigenvalue of the correlations: the rounding of a file and of a fit."""


def check_size(covariance: Matrix, size: int) -> None:
    """Raise `ValueError` if a matrix does not have this many rows and columns.

    Args:
        covariance: The matrix.
        size: Number of its rows and columns.

    Raises:
        ValueError: if it has another size.
    """
    if {len(covariance), *map(len, covariance)} != {size}:
        raise ValueError(f"covariance must be {size} x {size}")


def is_covariance(covariance: Matrix) -> bool:
    """Return whether a square matrix is symmetric without negative eigenvalues, up to rounding.

    Parameters that are exactly known have rows of zeros.

    Args:
        covariance: The matrix.
    """
    C = np.array(covariance)
    variances = np.diag(C)
    unit = np.sqrt(np.where(variances > 0.0, variances, 1.0))  # units of the parameters differ by orders of magnitude
    correlation = C / np.outer(unit, unit)
    symmetric = np.abs(correlation - correlation.T).max() <= _TOLERANCE
    return bool(symmetric and np.linalg.eigvalsh(correlation).min() >= -_TOLERANCE * len(C))
