"""What else a calibration finds: where the camera is, how late it is, what the tool weighs, how the arm moves."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, ConfigDict, model_validator
from pydantic.dataclasses import dataclass

from calibration.result.camera import CameraIntrinsics
from robot_rl.config.components import SimulationConfig
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose

_STRICT = ConfigDict(extra="forbid", allow_inf_nan=False)
MOUNTINGS = {"eye_in_hand": "tcp", "eye_to_hand": "base"}
"""The frame that a camera is fixed to, by mounting."""

Matrix = tuple[tuple[float, ...], ...]


def _same(what: str, mine: str, asked: str | None, cure: str) -> None:
    if asked is not None and asked != mine:
        raise CalibrationError(f"this is a calibration of {what} {mine!r}, not of {asked!r}; {cure}")


@dataclass(frozen=True, config=_STRICT)
class HandEye:
    """Where a camera is.

    Attributes:
        robot: Which arm and tool.
        mounting: `eye_in_hand` (fixed to the tcp) or `eye_to_hand` (fixed to the base).
        position: Of the camera's optical frame in the frame it is fixed to [m].
        quaternion: Its orientation there, (w, x, y, z).
        covariance: Of position and orientation [m, rad], 6 x 6, in axes of the frame that the camera is fixed to.
        intrinsics: Of the camera, to be used with this pose: the lens that was given, corrected within its uncertainty.
        calibrated_from: Fingerprint of the intrinsics that were given.
        robot_position_noise: What the arm's poses turned out to be wrong by, per axis [m].
        robot_rotation_noise: And per axis of rotation [rad].
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
        if {len(self.covariance), *map(len, self.covariance)} != {6}:
            raise ValueError("covariance must be 6 x 6")
        return self

    @property
    def camera(self) -> str:
        """Which camera."""
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
    def sigma(self) -> np.ndarray:
        """Standard deviations of position [m] and rotation [rad], shape (6,)."""
        return np.sqrt(np.diag(np.array(self.covariance)))

    def require(
        self, *, robot: str | None = None, camera: str | None = None, size: tuple[int, int] | None = None
    ) -> None:
        """Nothing, if this belongs to the robot, the camera and the image size (width, height) given.

        Raises:
            CalibrationError: if it does not.
        """
        cure = "calibrate: robot-rl calibrate hand-eye"
        _same("robot", self.robot, robot, cure)
        _same("camera", self.camera, camera, cure)
        self.intrinsics.require(size=size)


@dataclass(frozen=True, config=_STRICT)
class TimeOffset:
    """How late a camera is.

    Attributes:
        robot: Whose proprioception it was compared with.
        camera: Which camera.
        delay: A frame stamped t shows the arm as its state stamped t - delay says [s].
        sigma: Standard deviation of it [s].
    """

    robot: str
    camera: str
    delay: float
    sigma: float

    def require(self, *, robot: str | None = None, camera: str | None = None) -> None:
        """Nothing, if this belongs to the robot and camera given.

        Raises:
            CalibrationError: if it does not.
        """
        cure = "calibrate: robot-rl calibrate time-offset"
        _same("robot", self.robot, robot, cure)
        _same("camera", self.camera, camera, cure)


@dataclass(frozen=True, config=_STRICT)
class ToolWrench:
    """What a wrench sensor measures although nothing touches the tool.

    Attributes:
        robot: Which arm and tool.
        bias: Force [N] and torque [Nm] of the unloaded sensor, in its frame.
        mass: Of what hangs on the sensor [kg].
        center_of_mass: In the sensor's frame [m].
        covariance: Of (bias, mass, center_of_mass), 10 x 10.
        gravity: Acceleration in the base frame [m/s^2].
    """

    robot: str
    bias: tuple[float, float, float, float, float, float]
    mass: float
    center_of_mass: tuple[float, float, float]
    covariance: Matrix = field(repr=False)
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)

    def unloaded(self, R_base_sensor: np.ndarray) -> np.ndarray:
        """What the sensor reads with nothing touching the tool, held still: (force, torque), shape (6,).

        Args:
            R_base_sensor: Orientation of the sensor in the base frame, shape (3, 3).
        """
        force = self.mass * R_base_sensor.T @ np.array(self.gravity)
        return np.array(self.bias) + np.concatenate((force, np.cross(self.center_of_mass, force)))

    def require(self, *, robot: str | None = None) -> None:
        """Nothing, if this belongs to the robot given.

        Raises:
            CalibrationError: if it does not.
        """
        _same("robot", self.robot, robot, "calibrate: robot-rl calibrate wrench")


def _settings(value: object) -> object:
    """From a file: a mapping, which a strict dataclass does not take for itself."""
    return SimulationConfig(**value) if isinstance(value, dict) else value


@dataclass(frozen=True, config=_STRICT)
class SimulatedArm:
    """How a simulated arm has to move to mirror a real one.

    Attributes:
        robot: Which arm and controller it mirrors.
        settings: What a training's configuration takes as `simulation`; no entry is None.
        covariance: Of the settings, in their order, 7 x 7.
    """

    robot: str
    settings: Annotated[SimulationConfig, BeforeValidator(_settings)]
    covariance: Matrix = field(repr=False)

    def require(self, *, robot: str | None = None) -> None:
        """Nothing, if this belongs to the robot given.

        Raises:
            CalibrationError: if it does not.
        """
        _same("robot", self.robot, robot, "calibrate: robot-rl calibrate sim")


@dataclass(frozen=True, config=_STRICT)
class Quality:
    """What to know of a result before using it.

    Attributes:
        good: Whether it is inside the limits that the calibration set itself.
        verdict: In a sentence.
        figures: Measured facts, by name with unit, e.g. `rms_px`.
        rejected: What was left out, and why, by name.
    """

    good: bool
    verdict: str
    figures: dict[str, float] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)


Calibration = CameraIntrinsics | HandEye | TimeOffset | ToolWrench | SimulatedArm
