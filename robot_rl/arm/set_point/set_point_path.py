"""The way of the set-point between two commands of a policy: a jump, a straight line in time, or minimum jerk.

A policy commands ten times a second, an arm's controller listens more often. A set-point that jumps makes a stiff arm
stop and go in every step; one that is on its way arrives later. `robot-rl bench arm` measures both.

References:
    Flash and Hogan, "The coordination of arm movements", J. Neurosci. 5 (1985): minimum jerk is a polynomial of degree
    five. Here it begins with the velocity and acceleration that the set-point has, and ends at rest.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from robot_rl.clock import NS_PER_S
from robot_rl.geometry import Pose, quat_conjugate, quat_from_rotvec, quat_multiply, rotvec_from_quat

Interpolation = Literal["none", "linear", "minimum_jerk"]
InterpolationChoice = Literal["driver", Interpolation]
"""The same in a robot file; `driver` is the driver's own, its attribute `interpolation`, or none without one."""
INTERPOLATIONS: tuple[Interpolation, ...] = get_args(Interpolation)
USUAL, LONGEST = 0.1, 0.25
"""How long the way to a first set-point takes, and the longest to another one [s]; else as long as since the last."""


def chosen(choice: InterpolationChoice, driver: object) -> Interpolation:
    """Return what a choice is for a driver."""
    own: Interpolation = getattr(driver, "interpolation", "none")
    return own if choice == "driver" else choice


class SetPointPath:
    """Where the set-point is, in the time between commands.

    Args:
        kind: How it gets to a new one.
    """

    def __init__(self, kind: Interpolation) -> None:
        self._kind = kind
        self._target, self._going = Pose.identity(), False
        self._begin, self._duration = 0, 0.0
        self._way = np.zeros((6, 6))  # coefficients of the polynomial, by degree, of what is left of the way

    def go(self, start: Pose, target: Pose, now: int) -> None:
        """Set out for a new set-point.

        Args:
            start: Where the set-point begins if it is not on a way, i.e. where the tcp is.
            target: The new one.
            now: Time [ns].
        """
        rates = np.zeros((2, 6))
        duration = USUAL
        if self._going:
            start, rates = self._state(now)
            duration = min((now - self._begin) / NS_PER_S, LONGEST)
        turn = rotvec_from_quat(quat_multiply(quat_conjugate(target.quaternion), start.quaternion))
        left = np.concatenate((start.position - target.position, turn))
        self._target, self._going, self._begin = target, True, now
        self._duration = 0.0 if self._kind == "none" else duration
        self._way = _coefficients(self._kind, left, rates, duration)

    def at(self, now: int) -> Pose:
        """Return the set-point; the position is in the box of which begin and end of the way are corners.

        Args:
            now: Time [ns].
        """
        return self._state(now)[0]

    def on_way(self, now: int) -> bool:
        """Return whether the set-point still moves."""
        return self._going and now - self._begin < self._duration * NS_PER_S

    def end(self) -> None:
        """Forget the way: the arm holds."""
        self._going = False

    def _state(self, now: int) -> tuple[Pose, np.ndarray]:
        """Return the set-point, and the rates of its position [m/s, m/s^2] and turn, shape (2, 6)."""
        seconds = (now - self._begin) / NS_PER_S
        if seconds >= self._duration:
            return self._target, np.zeros((2, 6))
        powers = seconds ** np.arange(6)
        left = powers @ self._way
        degrees = np.arange(1, 6)
        first = (degrees * powers[:-1]) @ self._way[1:]
        second = (degrees[1:] * degrees[:-1] * powers[:-2]) @ self._way[2:]
        begin = self._way[0]
        left[:3] = np.clip(left[:3], np.minimum(begin[:3], 0.0), np.maximum(begin[:3], 0.0))
        turned = quat_multiply(self._target.quaternion, quat_from_rotvec(left[3:]))
        return Pose(self._target.position + left[:3], turned), np.array([first, second])


def _coefficients(kind: Interpolation, left: np.ndarray, rates: np.ndarray, duration: float) -> np.ndarray:
    """Return the polynomial from `left` at time 0 to zero at `duration` [s], by degree: shape (6, 6)."""
    way = np.zeros((6, 6))
    if kind == "none" or duration <= 0.0:
        return way
    way[0] = left
    if kind == "linear":
        way[1] = -left / duration
        return way
    v, a = rates * np.array([[duration], [duration**2]])  # per duration
    scaled = (left, v, a / 2, -10 * left - 6 * v - 1.5 * a, 15 * left + 8 * v + 1.5 * a, -6 * left - 3 * v - 0.5 * a)
    return np.array(scaled) / duration ** np.arange(6)[:, None]
