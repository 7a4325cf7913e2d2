"""From joint targets to joint commands: feed-forward and an estimate of the load; the arm neither sinks nor sways.

A servo under load stays behind its command. With the command "measured pose + action" such an arm sinks at every step,
also at zero actions. Here the load is estimated as what the command leads the measured position by, beyond the lag of
a servo that moves, and is added to a smoothed target:

    d(reference)/dt = (target - reference) / S
    u = reference + load - D velocity
    d(load)/dt = L (u - measured - T velocity - load)

which is a disturbance observer of a servo that is modelled as a first-order lag T. It stands still where nothing is
missing, whatever the load, and however often the same target is set.

The arm is part of a second loop: a policy makes its targets of measured poses, which are 50 to 150 ms old when the arm
gets there. That loop sways wherever the arm answers a target by more than the target itself, as a servo does at its
resonance. Therefore the target is smoothed, and the measured position counts only through the slow estimate of the
load: a proportional term on it would sway as soon as measurements or commands are 10 ms late, as they are from another
process on a busy machine. The gains were chosen on a model of an SO-101 with half to twice the stiffness and once to
twice the damping of its servos, at 50 and 100 Hz, and with delays of up to 40 ms (docs/benchmarks.md).

Four limits hold for every command: the joint's, its speed, the lead over the measured position, and the speed of the
tool, to which several joints together may add. The lead is what bounds the torque in contact, and the load.
"""

from __future__ import annotations

import math

import numpy as np

SMOOTHING = 0.06
"""Time constant of the reference [s]."""
LOAD_RATE = 3.0
"""How fast the estimate of the load follows [1/s]."""
LAG = 0.05
"""Time by which a servo that moves stays behind its command [s]."""
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
        self._held = np.zeros(low.shape)  # what is commanded where nothing is aimed at
        self._load, self._reference = np.zeros(low.shape), np.zeros(low.shape)
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
        self._target, self._held = None, self.command.copy()

    def step(self, measured: np.ndarray, velocity: np.ndarray, period: float, jacobian: np.ndarray) -> np.ndarray:
        """Return the next command [rad], shape (n,).

        Args:
            measured: Positions [rad], shape (n,).
            velocity: As measured [rad/s], shape (n,).
            period: Time since the step before [s].
            jacobian: From joint velocities to the twist of the tool, shape (6, n).
        """
        lead = self.command - measured - LAG * velocity
        if self._target is None:  # nothing feeds back, so the estimate need not be slow
            wanted, self._load = self._held, lead
            self._reference = self._held - lead
        else:
            self._load = self._load + (1.0 - math.exp(-LOAD_RATE * period)) * (lead - self._load)
            smoothing = 1.0 - math.exp(-period / SMOOTHING)
            reference = self._reference + smoothing * (self._target - self._reference)
            self._reference = np.clip(reference, measured - self._lead, measured + self._lead)  # it does not run away
            missing = self._reference - measured
            missing[np.abs(missing) < self._dead_zone] = 0.0
            wanted = measured + missing + self._load - DAMPING * velocity
        wanted = self._bounded(wanted, measured)
        most = self._speed * period
        change = np.clip(wanted - self.command, -most, most)
        twist = jacobian @ change
        speeds = np.array([np.linalg.norm(twist[:3]), np.linalg.norm(twist[3:])])
        slower = min(1.0, *(self._tool_speed * period / np.maximum(speeds, 1e-12)))
        self.command = self.command + slower * change
        return self.command

    def _bounded(self, command: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """Return a command within lead and limits; of a joint outside its limits, the nearest one inside."""
        return np.clip(np.clip(command, measured - self._lead, measured + self._lead), self._low, self._high)
