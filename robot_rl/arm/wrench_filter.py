"""The contact wrench on the tool from the readings of a sensor: tared, low-pass filtered, with the peak force."""

from __future__ import annotations

import math
import threading
from collections import deque

import numpy as np

from robot_rl.clock import NS_PER_S

TARE_WINDOW = NS_PER_S // 2
"""Time over which the unloaded sensor is averaged [ns]."""


class ContactWrench:
    """A first-order low-pass, `y <- y + (1 - exp(-2 pi f dt)) (x - y)`, behind a tare.

    Taring takes off the present reading, e.g. the tool's weight; it holds for the orientation in which it was
    done. A driver's thread may add readings while another one tares.

    Args:
        cutoff: Corner frequency f [Hz]; 0 does not filter.
    """

    def __init__(self, cutoff: float) -> None:
        self._cutoff = cutoff
        self._lock = threading.Lock()
        self._raw: deque[tuple[int, np.ndarray]] = deque(maxlen=1000)
        self._offset = np.zeros(6)
        self._value: np.ndarray | None = None
        self._peak = 0.0

    def add(self, stamp: int, wrench: np.ndarray) -> np.ndarray:
        """Add a raw wrench of a time [ns] and return the contact wrench. Shape (6,)."""
        with self._lock:
            loaded = wrench - self._offset
            if self._value is None or not self._cutoff:
                self._value = loaded
            else:
                decay = math.exp(-2.0 * math.pi * self._cutoff * max(stamp - self._raw[-1][0], 0) / NS_PER_S)
                self._value = loaded + decay * (self._value - loaded)
            self._raw.append((stamp, wrench))
            self._peak = max(self._peak, float(np.linalg.norm(self._value[:3])))
            return self._value

    def take_peak(self) -> float:
        """Largest filtered force since the last call [N]."""
        with self._lock:
            peak, self._peak = self._peak, 0.0
            return peak

    def tare(self) -> bool:
        """Subtract the mean of the last half second; return whether there is one. The tool must touch nothing."""
        with self._lock:
            if not self._raw:
                return False
            newest = self._raw[-1][0]
            self._offset = np.mean([wrench for stamp, wrench in self._raw if newest - stamp <= TARE_WINDOW], axis=0)
            self._value, self._peak = None, 0.0
            return True
