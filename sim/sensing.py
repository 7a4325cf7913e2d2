"""Sensor imperfections as data: how late and how noisy each signal is.

One dataclass says it, one class applies it. Noise comes from a generator that the task seeds at reset, so an episode
is reproducible.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from robot_rl.clock import NS_PER_S


@dataclass(frozen=True)
class Sensing:
    """Delays and noise.

    Attributes:
        delay: Age of proprioception and wrench when it is read [s].
        camera_delay: Age of a frame when it is read [s].
        position_noise: Standard deviation of the measured tcp position [m].
        rotation_noise: Of its orientation [rad].
        force_noise: Of the filtered force [N].
        torque_noise: Of the filtered torque [Nm].
        pixel_noise: Of each colour value [0-255].
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
    pixel_noise: float = 2.0
    wrench_cutoff: float = 15.0
    period: float = 0.01
    max_age: float = 0.2


@dataclass(frozen=True, eq=False)
class Sample:
    """What the sensors measured at `stamp` [ns]; wrench at the wrist sensor, filtered, not yet tared."""

    stamp: int
    qpos: np.ndarray
    qvel: np.ndarray
    tcp_position: np.ndarray
    tcp_matrix: np.ndarray
    tcp_twist: np.ndarray
    wrench: np.ndarray


class SampleHistory:
    """The last few samples, looked up by age."""

    def __init__(self, span: float, period: float) -> None:
        self._samples: deque[Sample] = deque(maxlen=int(np.ceil(span / period)) + 2)
        self.frozen = False
        """Fault injection: while true, no new sample arrives, as when a driver dies."""

    def clear(self) -> None:
        """Forgets everything, at reset."""
        self._samples.clear()

    def add(self, sample: Sample) -> None:
        """Appends the newest sample."""
        if not self.frozen:
            self._samples.append(sample)

    def at(self, stamp: int) -> Sample:
        """The newest sample not younger than allowed: measured at or before `stamp` [ns], else the oldest kept."""
        for sample in reversed(self._samples):
            if sample.stamp <= stamp:
                return sample
        return self._samples[0]


def seconds_to_ns(seconds: float) -> int:
    """Converts [s] to [ns]."""
    return round(seconds * NS_PER_S)
