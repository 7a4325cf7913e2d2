"""From joint targets to joint commands: integral control, so that the arm neither sinks nor stops short.

A servo under load stays behind its command. With the command "measured pose + action" such an arm sinks at every step,
also at zero actions. Here the command changes by what is missing,

    u = i + P (target - measured) - D velocity,    di/dt = I (target - measured),

so it stands still where nothing is missing, whatever the load, and however often the same target is set. The gains were
chosen on a model of an SO-101 with half to twice the stiffness and once to twice the damping of its servos
(docs/benchmarks.md).

Four limits hold for every command: the joint's, its speed, the lead over the measured position, and the speed of the
tool, to which several joints together may add. The lead is what bounds the torque in contact, and the integral.
"""

from __future__ import annotations

import numpy as np

PROPORTIONAL = 1.0
INTEGRAL = 10.0
"""[1/s]."""
DAMPING = 0.05
"""[s]."""
DEAD_ZONE = 0.75
"""Deviations below this share of the encoder's resolution count as none: a reading between two counts is no motion."""


class JointController:
    """The control law; no time, no thread.

    Args:
        low: Least positions [rad], shape (n,).
        high: Largest positions [rad], shape (n,).
        speed: Largest speed of a command [rad/s].
        lead: By how much a command may lead the measured position [rad].
        resolution: Of the encoders [rad].
        tool_speed: Largest speed and turn rate of the tool that commands ask for [m/s, rad/s].
    """

    def __init__(
        self,
        low: np.ndarray,
        high: np.ndarray,
        speed: float,
        lead: float,
        resolution: float,
        tool_speed: tuple[float, float],
    ) -> None:
        self._low, self._high, self._speed, self._lead = low, high, speed, lead
        self._tool_speed = np.array(tool_speed)
        self._dead_zone = DEAD_ZONE * resolution
        self.command = np.zeros(low.shape)
        """What is commanded [rad], shape (n,)."""
        self._integral = np.zeros(low.shape)
        self._target: np.ndarray | None = None

    def restart(self, command: np.ndarray) -> None:
        """Begin with what is commanded already, and hold there."""
        self.command = command.copy()
        self.hold()

    def aim(self, target: np.ndarray) -> None:
        """Go to positions [rad], shape (n,)."""
        self._target = target.copy()

    def hold(self) -> None:
        """Keep the command as it is."""
        self._target, self._integral = None, self.command.copy()

    def step(self, measured: np.ndarray, velocity: np.ndarray, period: float, jacobian: np.ndarray) -> np.ndarray:
        """Return the next command [rad], shape (n,).

        Args:
            measured: Positions [rad], shape (n,).
            velocity: As measured [rad/s], shape (n,).
            period: Time since the step before [s].
            jacobian: From joint velocities to the twist of the tool, shape (6, n).
        """
        if self._target is None:
            missing = np.zeros(measured.shape)
        else:
            missing = self._target - measured
            missing[np.abs(missing) < self._dead_zone] = 0.0
        wanted = self._bounded(self._integral + INTEGRAL * period * missing + PROPORTIONAL * missing, measured)
        self._integral = wanted - PROPORTIONAL * missing  # so it does not wind up at a bound
        damped = self._bounded(wanted - DAMPING * velocity, measured)
        most = self._speed * period
        change = np.clip(damped - self.command, -most, most)
        twist = jacobian @ change
        speeds = np.array([np.linalg.norm(twist[:3]), np.linalg.norm(twist[3:])])
        share = min(1.0, *(self._tool_speed * period / np.maximum(speeds, 1e-12)))
        self.command = self.command + share * change
        return self.command

    def _bounded(self, command: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """Return a command within lead and limits; of a joint outside its limits, the nearest one inside."""
        return np.clip(np.clip(command, measured - self._lead, measured + self._lead), self._low, self._high)
