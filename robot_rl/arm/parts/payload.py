"""The weight of the tool in the readings of a force sensor: taken off, or, where it is not known, watched."""

from __future__ import annotations

import math

import numpy as np
from pydantic.dataclasses import dataclass

from robot_rl.config.field_types import STRICT, NonNegativeReal, PositiveReal, Real
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate

GRAVITY = 9.81
"""[m/s^2]."""


@dataclass(frozen=True, config=STRICT)
class PayloadConfig:
    """What hangs on the sensor."""

    payload_mass: NonNegativeReal = 0.0
    """Mass of the tool behind the sensor [kg]; 0: not known, and then the tool must not tilt."""
    payload_center: tuple[Real, Real, Real] = (0.0, 0.0, 0.0)
    """Its centre of mass in the frame of the tcp [m]."""
    base_up: tuple[Real, Real, Real] = (0.0, 0.0, 1.0)
    """The direction up in the frame of the base; (0, 0, -1) for an arm on a ceiling."""
    max_tilt: PositiveReal = 0.05
    """How far the tool may tilt while its mass is not known [rad]."""


class Payload:
    """The weight of the tool.

    Args:
        config: Mass, centre, and the direction of gravity.
    """

    def __init__(self, config: PayloadConfig) -> None:
        self._config = config
        up = np.array(config.base_up, float)
        self._down = -up / max(float(np.linalg.norm(up)), 1e-12)
        self._center = np.array(config.payload_center, float)
        self._first: np.ndarray | None = None
        self._tilt = 0.0

    def contact(self, wrench: np.ndarray, T_base_tcp: Pose) -> np.ndarray:
        """Return the wrench without the weight of the tool, in the axes of the tcp. Shape (6,).

        Args:
            wrench: As measured, at the tcp and in its axes. Shape (6,).
            T_base_tcp: Where the tool is.
        """
        down = quat_rotate(quat_conjugate(T_base_tcp.quaternion), self._down)
        if self._config.payload_mass == 0.0:
            self._first = down if self._first is None else self._first
            self._tilt = math.acos(min(max(float(down @ self._first), -1.0), 1.0))
            return wrench
        weight = self._config.payload_mass * GRAVITY * down
        return wrench - np.concatenate((weight, np.cross(self._center, weight)))

    def fault(self) -> str | None:
        """Return why the wrench cannot be trusted: the tool has tilted, and its mass is not known."""
        if self._tilt <= self._config.max_tilt:
            return None
        return (
            f"the tool has tilted by {math.degrees(self._tilt):.0f} deg since the start, and the weight behind the "
            "force sensor is not known, so its readings are wrong; set payload_mass and payload_center, or use a task "
            "that does not tilt the tool"
        )

    def restart(self) -> None:
        """Begin anew with the present tilt."""
        self._first, self._tilt = None, 0.0
