"""What an arm that is driven by its joints has to offer: measured and commanded positions, motors on, faults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np


class JointReading(NamedTuple):
    """Measured at one time.

    Attributes:
        stamp: When [ns since 1970].
        position: Of the joints [rad], shape (n,).
        velocity: Of the joints [rad/s], shape (n,).
        opening: Of the gripper, from 0, closed, to 1, open; None without one.
    """

    stamp: int
    position: np.ndarray
    velocity: np.ndarray
    opening: float | None


class JointPort(Protocol):
    """The motors of an arm. Used by one thread at a time, but for `faults`."""

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest positions of the joints [rad], shapes (n,)."""
        ...

    @property
    def resolution(self) -> float:
        """Smallest difference of positions that it measures [rad]."""
        ...

    @property
    def has_gripper(self) -> bool:
        """Whether there is a gripper."""
        ...

    def engage(self) -> JointReading:
        """Switch the motors on without a jump; return the positions that are commanded then.

        Raises:
            RobotLostError: if it does not work.
        """
        ...

    def read(self) -> JointReading:
        """Measure.

        Raises:
            RobotLostError: if the arm does not answer. A later call tries again, and works when it is back.
        """
        ...

    def write(self, position: np.ndarray, opening: float | None) -> None:
        """Command positions [rad], shape (n,), and the gripper's opening; None leaves it as it is.

        Raises:
            RobotLostError: if the arm is not there.
        """
        ...

    def faults(self) -> Sequence[str]:
        """Return why the motors do not obey now, with the cure; they stay until `engage`."""
        ...

    def close(self) -> None:
        """Release it; the motors hold. Doing it twice is fine."""
        ...
