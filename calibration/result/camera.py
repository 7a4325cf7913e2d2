"""Intrinsics of a camera: the projection of points to pixels, and its uncertainty."""

from __future__ import annotations

import hashlib
from dataclasses import field, replace

import numpy as np
from pydantic import ConfigDict, model_validator
from pydantic.dataclasses import dataclass

from calibration.result.covariance import check_size
from calibration.result.lens import COEFFICIENTS, distort, undistort
from robot_rl.errors import CalibrationError

PARAMETERS = ("fx", "fy", "cx", "cy")
"""Names of the parameters before the distortion coefficients in `vector` and `covariance`."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", allow_inf_nan=False))
class CameraIntrinsics:
    """A camera model at one resolution.

    Attributes:
        camera: Name or, better, serial number of the camera; it is checked when the file is loaded.
        width: Width of the images [px].
        height: Height of the images [px].
        model: `plumb_bob`, `rational_polynomial` or `equidistant`, as in ROS; `lens.py` has the formulas.
        fx: Focal length [px].
        fy: Focal length [px].
        cx: Principal point [px]; 0 is the centre of the first column.
        cy: Principal point [px]; 0 is the centre of the first row.
        distortion: Coefficients in OpenCV's order.
        covariance: Covariance of (fx, fy, cx, cy, *distortion); empty if not known.
        rms: Root mean square of the reprojection error per coordinate [px]; 0 if not known.
    """

    camera: str
    width: int
    height: int
    model: str
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    rms: float = 0.0

    @model_validator(mode="after")
    def _check(self) -> CameraIntrinsics:
        if self.model not in COEFFICIENTS:
            raise ValueError(f"model is {self.model!r}; valid: {', '.join(COEFFICIENTS)}")
        if len(self.distortion) != COEFFICIENTS[self.model]:
            raise ValueError(f"{self.model} has {COEFFICIENTS[self.model]} coefficients, got {len(self.distortion)}")
        if min(self.width, self.height, self.fx, self.fy) <= 0:
            raise ValueError("width, height, fx and fy must be positive")
        if self.rms < 0.0:
            raise ValueError("rms must not be negative")
        if self.covariance:
            check_size(self.covariance, len(PARAMETERS) + len(self.distortion))
        return self

    @property
    def matrix(self) -> np.ndarray:
        """The camera matrix K, shape (3, 3)."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    @property
    def vector(self) -> np.ndarray:
        """(fx, fy, cx, cy, *distortion)."""
        return np.array([self.fx, self.fy, self.cx, self.cy, *self.distortion])

    def with_vector(self, vector: np.ndarray) -> CameraIntrinsics:
        """Return the camera with other parameters (fx, fy, cx, cy, *distortion)."""
        fx, fy, cx, cy, *distortion = vector.tolist()
        return replace(self, fx=fx, fy=fy, cx=cx, cy=cy, distortion=tuple(distortion))

    @property
    def sigma(self) -> np.ndarray | None:
        """Standard deviations of `vector`; None if not known."""
        return np.sqrt(np.diag(np.array(self.covariance))) if self.covariance else None

    @property
    def fingerprint(self) -> str:
        """Hash of twelve hexadecimal digits over all parameters; other results identify the intrinsics by it."""
        facts = (self.camera, self.width, self.height, self.model, *(float(x).hex() for x in self.vector))
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]

    def project(self, points: np.ndarray) -> np.ndarray:
        """Project points in the optical frame to pixels.

        Args:
            points: Points [m], shape (n, 3).

        Returns:
            Pixels, shape (n, 2); NaN for points behind a pinhole. They may lie outside the image.
        """
        return self.project_with_jacobian(points)[0]

    def project_with_jacobian(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pixels, shape (n, 2), and their derivative by the points, shape (n, 2, 3) [px/m]."""
        plane, derivative = distort(self.model, np.array(self.distortion), np.asarray(points, dtype=float))
        focal = np.array([self.fx, self.fy])
        return plane * focal + [self.cx, self.cy], derivative * focal[:, None]

    def cropped(self, crop: tuple[int, int, int, int], size: tuple[int, int]) -> CameraIntrinsics:
        """Return the intrinsics of a rectangle of the images that is scaled to another size.

        The edges of the rectangle become the edges of the new images: column u becomes
        `(u + 0.5 - left) * scale - 0.5`. The lens, and so the distortion, stays the same.

        Args:
            crop: Left, top, width and height of the rectangle [px].
            size: Width and height of the new images [px].
        """
        left, top, width, height = crop
        sx, sy = size[0] / width, size[1] / height
        scale = np.array([sx, sy, sx, sy, *np.ones(len(self.distortion))])
        covariance = np.array(self.covariance) * np.outer(scale, scale) if self.covariance else np.empty((0, 0))
        return replace(
            self,
            width=size[0],
            height=size[1],
            fx=self.fx * sx,
            fy=self.fy * sy,
            cx=(self.cx + 0.5 - left) * sx - 0.5,
            cy=(self.cy + 0.5 - top) * sy - 0.5,
            covariance=tuple(map(tuple, covariance.tolist())),
            rms=self.rms * float(np.sqrt((sx * sx + sy * sy) / 2)),
        )

    def rays(self, pixels: np.ndarray) -> np.ndarray:
        """Return unit vectors in the optical frame for pixels (n, 2), shape (n, 3); NaN where no ray projects there."""
        plane = (np.asarray(pixels, dtype=float) - [self.cx, self.cy]) / [self.fx, self.fy]
        return undistort(self.model, np.array(self.distortion), plane)

    def require(self, *, camera: str | None = None, size: tuple[int, int] | None = None) -> None:
        """Raise `CalibrationError` if these intrinsics are of another camera or image size (width, height) than given.

        Raises:
            CalibrationError: if they are.
        """
        if camera is not None and camera != self.camera:
            raise CalibrationError(
                f"these are intrinsics of camera {self.camera!r}, not of {camera!r}; "
                "use its own, or calibrate it: robot-rl calibrate intrinsics"
            )
        if size is not None and size != (self.width, self.height):
            raise CalibrationError(
                f"the intrinsics of camera {self.camera!r} are for {self.width} x {self.height} px, the images have "
                f"{size[0]} x {size[1]} px; set the camera to that resolution, or calibrate at this one"
            )
