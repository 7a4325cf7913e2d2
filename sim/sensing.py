"""Sensor model: delay and noise of each signal.

`Sensing` has the parameters, `MujocoRobotIO` applies them. The task seeds the noise at reset, so that an episode is
reproducible.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from robot_rl.clock import NS_PER_S


@dataclass(frozen=True)
class Sensing:
    """Delays and noise.

    Attributes:
        delay: Age of proprioception and wrench when it is read [s].
        camera_delay: Age of a frame when it is read [s].
        position_noise: Standard deviation of the measured tcp position [m].
        rotation_noise: Standard deviation of the measured tcp orientation [rad].
        force_noise: Standard deviation of the filtered force [N].
        torque_noise: Standard deviation of the filtered torque [Nm].
        wrench_bias: Error of the force that is left after taring, in a direction drawn for each episode [N].
        wrench_drift: Growth of the force's error during an episode, in another drawn direction [N/s].
        pixel_noise: Standard deviation of each colour value [0-255].
        wrench_cutoff: Corner frequency of the wrench's first-order low-pass filter [Hz].
        period: Time between samples [s].
        max_age: A state older than this is stale [s].
    """

    delay: float = 0.01
    camera_delay: float = 0.03
    position_noise: float = 5e-5
    rotation_noise: float = 2e-4
    force_noise: float = 0.2
    torque_noise: float = 0.01
    wrench_bias: float = 0.0
    wrench_drift: float = 0.0
    pixel_noise: float = 2.0
    wrench_cutoff: float = 15.0
    period: float = 0.01
    max_age: float = 0.2


class SensedState(NamedTuple):
    """Measurements of the sensors at `stamp` [ns]."""

    stamp: int
    qpos: np.ndarray
    """All joint positions. Shape (nq,)."""
    qvel: np.ndarray
    tcp_position: np.ndarray
    """[m], base frame. Shape (3,)."""
    tcp_matrix: np.ndarray
    """Rotation matrix, base frame, by rows. Shape (9,)."""
    tcp_velocity: np.ndarray
    """Angular [rad/s] and linear [m/s], base frame. Shape (6,)."""
    wrench: np.ndarray
    """On the tool, at the wrist sensor and in its frame, filtered and tared. Shape (6,)."""


class WrenchFilter:
    """First-order low-pass of the wrist sensor: its input has the physics rate, its output the rate of the samples.

    `y <- y + a (x - y)` for each of the `batch` inputs in turn, written as one product.

    Args:
        cutoff: Corner frequency [Hz].
        period: Time between inputs [s].
        batch: Inputs per update.
    """

    def __init__(self, cutoff: float, period: float, batch: int) -> None:
        decay = np.exp(-2.0 * np.pi * cutoff * period)
        self._carry = float(decay**batch)
        self._weights = (1.0 - decay) * decay ** np.arange(batch - 1, -1, -1)
        self.inputs = np.zeros((batch, 6))
        """The newest raw wrenches, oldest first; the caller fills it."""
        self.value = np.zeros(6)
        """The filtered wrench, updated in place."""

    def restart(self, value: np.ndarray) -> None:
        """Restart from a steady wrench."""
        self.value[:] = value
        self.inputs[:] = value

    def update(self) -> None:
        """Update the filtered wrench with all inputs."""
        np.multiply(self.value, self._carry, out=self.value)
        np.add(self.value, self._weights.dot(self.inputs), out=self.value)


class SampleHistory:
    """History of the last few samples, searched by age."""

    def __init__(self, span: float, period: float) -> None:
        self.span = seconds_to_ns(span + period)
        """Age up to which samples are kept [ns]."""
        self._samples: deque[SensedState] = deque(maxlen=int(np.ceil(span / period)) + 2)
        self.frozen = False
        """Fault injection: while true, no new sample is added, as if the driver had died."""

    def clear(self) -> None:
        """Remove all samples, at reset; the last sample of a dead driver stays."""
        if not self.frozen:
            self._samples.clear()

    def add(self, sample: SensedState) -> None:
        """Append the newest sample."""
        if not self.frozen:
            self._samples.append(sample)

    def at(self, stamp: int) -> SensedState:
        """Return the newest sample measured at or before `stamp` [ns], or else the oldest one."""
        for sample in reversed(self._samples):
            if sample.stamp <= stamp:
                return sample
        return self._samples[0]


def seconds_to_ns(seconds: float) -> int:
    """Convert [s] to [ns]."""
    return round(seconds * NS_PER_S)
