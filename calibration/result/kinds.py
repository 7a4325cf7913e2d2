"""Results besides intrinsics: hand-eye pose, time offset, wrench of the tool, simulated arm, and their quality."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, ConfigDict, model_validator
from pydantic.dataclasses import dataclass

from calibration.result.camera import CameraIntrinsics
from calibration.result.covariance import Matrix, check_size
from robot_rl.config.components import SimulationConfig
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
MOUNTINGS = {"eye_in_hand": "tcp", "eye_to_hand": "base"}
"""Frame that a camera is fixed to, by mounting."""


def _require_same(what: str, actual: str, required: str | None, cure: str) -> None:
    if required is not None and required != actual:
        raise CalibrationError(f"this is a calibration of {what} {actual!r}, not of {required!r}; {cure}")


@dataclass(frozen=True, config=_STRICT)
class HandEye:
    """Pose of a camera on the tool or beside the arm.

    Attributes:
        robot: Name of the arm and tool.
        mounting: `eye_in_hand` (fixed to the tcp) or `eye_to_hand` (fixed to the base).
        position: Origin of the camera's optical frame in the frame that it is fixed to [m].
        quaternion: Orientation of the optical frame there, (w, x, y, z).
        covariance: Covariance of position and orientation [m, rad], 6 x 6, in axes of the frame that the camera is
            fixed to.
        intrinsics: Lens to use with this pose: the given lens, corrected within its uncertainty.
        calibrated_from: Fingerprint of the given intrinsics.
        robot_position_noise: Estimated noise of the arm's poses, per axis [m].
        robot_rotation_noise: The same, per axis of rotation [rad].
    """

    robot: str
    mounting: str
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]
    covariance: Matrix = field(repr=False)
    intrinsics: CameraIntrinsics
    calibrated_from: str
    robot_position_noise: float
    robot_rotation_noise: float

    @model_validator(mode="after")
    def _check(self) -> HandEye:
        if self.mounting not in MOUNTINGS:
            raise ValueError(f"mounting is {self.mounting!r}; valid: {', '.join(MOUNTINGS)}")
        if abs(float(np.linalg.norm(self.quaternion)) - 1.0) > 1e-6:
            raise ValueError("quaternion must be of unit length")
        check_size(self.covariance, 6)
        if min(self.robot_position_noise, self.robot_rotation_noise) < 0.0:
            raise ValueError("robot_position_noise and robot_rotation_noise must not be negative")
        return self

    @property
    def camera(self) -> str:
        """Name or serial number of the camera."""
        return self.intrinsics.camera

    @property
    def parent(self) -> str:
        """The frame that the camera is fixed to: `tcp` or `base`."""
        return MOUNTINGS[self.mounting]

    @property
    def T_parent_camera(self) -> Pose:
        """Pose of the optical frame in `parent`."""
        return Pose(np.array(self.position), np.array(self.quaternion))

    @property
    def mount(self) -> CameraMount:
        """Where the camera is."""
        return CameraMount.of("tcp" if self.mounting == "eye_in_hand" else "base", self.T_parent_camera)

    @property
    def sigma(self) -> np.ndarray:
        """Standard deviations of position [m] and rotation [rad], shape (6,)."""
        return np.sqrt(np.diag(np.array(self.covariance)))

    def require(
        self, *, robot: str | None = None, camera: str | None = None, size: tuple[int, int] | None = None
    ) -> None:
        """Raise `CalibrationError` if this is of another robot, camera or image size (width, height) than given.

        Raises:
            CalibrationError: if it is.
        """
        cure = "calibrate: robot-rl calibrate hand-eye"
        _require_same("robot", self.robot, robot, cure)
        _require_same("camera", self.camera, camera, cure)
        self.intrinsics.require(size=size)


@dataclass(frozen=True, config=_STRICT)
class TimeOffset:
    """Delay of a camera against the arm.

    Attributes:
        robot: Name of the arm and tool.
        camera: Name or serial number of the camera.
        delay: A frame stamped t shows the arm at its state stamped t - delay [s].
        sigma: Standard deviation of the delay [s].
    """

    robot: str
    camera: str
    delay: float
    sigma: float

    @model_validator(mode="after")
    def _check(self) -> TimeOffset:
        if self.sigma < 0.0:
            raise ValueError("sigma must not be negative")
        return self

    def require(self, *, robot: str | None = None, camera: str | None = None) -> None:
        """Raise `CalibrationError` if this is of another robot or camera than given.

        Raises:
            CalibrationError: if it is.
        """
        cure = "calibrate: robot-rl calibrate time-offset"
        _require_same("robot", self.robot, robot, cure)
        _require_same("camera", self.camera, camera, cure)


@dataclass(frozen=True, config=_STRICT)
class ToolWrench:
    """Bias of a wrench sensor, and mass and centre of mass of the tool.

    Attributes:
        robot: Name of the arm and tool.
        bias: Force [N] and torque [Nm] of the unloaded sensor, in its frame.
        mass: Mass of the tool beyond the sensor [kg].
        center_of_mass: Its centre of mass in the sensor's frame [m].
        covariance: Covariance of (bias, mass, center_of_mass), 10 x 10.
        gravity: Acceleration in the base frame [m/s^2].
    """

    robot: str
    bias: tuple[float, float, float, float, float, float]
    mass: float
    center_of_mass: tuple[float, float, float]
    covariance: Matrix = field(repr=False)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)

    @model_validator(mode="after")
    def _check(self) -> ToolWrench:
        if self.mass < 0.0:
            raise ValueError("mass must not be negative")
        check_size(self.covariance, 10)
        return self

    def unloaded(self, R_base_sensor: np.ndarray) -> np.ndarray:
        """Predict the reading at rest with nothing touching the tool: (force [N], torque [Nm]), shape (6,).

        Args:
            R_base_sensor: Orientation of the sensor in the base frame, shape (3, 3).
        """
        force = self.mass * R_base_sensor.T @ np.array(self.gravity)
        return np.array(self.bias) + np.concatenate((force, np.cross(self.center_of_mass, force)))

    def require(self, *, robot: str | None = None) -> None:
        """Raise `CalibrationError` if this is of another robot than given.

        Raises:
            CalibrationError: if it is.
        """
        _require_same("robot", self.robot, robot, "calibrate: robot-rl calibrate wrench")


def _settings(value: object) -> object:
    """Convert a mapping from a file, which a strict dataclass does not accept as it is."""
    return SimulationConfig(**value) if isinstance(value, dict) else value


@dataclass(frozen=True, config=_STRICT)
class SimulatedArm:
    """Settings of a simulated arm that mirrors a real one.

    Attributes:
        robot: Name of the real arm and controller.
        settings: The `simulation` section of a configuration; no entry is None.
        covariance: Covariance of the settings, in their order, 7 x 7.
    """

    robot: str
    settings: Annotated[SimulationConfig, BeforeValidator(_settings)]
    covariance: Matrix = field(repr=False)

    @model_validator(mode="after")
    def _check(self) -> SimulatedArm:
        names = [entry.name for entry in fields(self.settings)]
        if missing := [name for name in names if getattr(self.settings, name) is None]:
            raise ValueError(f"settings lack {', '.join(missing)}")
        check_size(self.covariance, len(names))
        return self

    def require(self, *, robot: str | None = None) -> None:
        """Raise `CalibrationError` if this is of another robot than given.

        Raises:
            CalibrationError: if it is.
        """
        _require_same("robot", self.robot, robot, "calibrate: robot-rl calibrate sim")


@dataclass(frozen=True, config=_STRICT)
class Quality:
    """Quality of a result.

    Attributes:
        good: Whether the result meets the limits of its calibration.
        verdict: The conclusion, in one sentence.
        figures: Measured figures, by name with unit, e.g. `rms_px`.
        rejected: Data that was left out, and why, by name.
    """

    good: bool
    verdict: str
    figures: dict[str, float] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)


Calibration = CameraIntrinsics | HandEye | TimeOffset | ToolWrench | SimulatedArm
