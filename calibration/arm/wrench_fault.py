"""Test whether a wrench sensor drifts, jumps, or reads its axes wrongly.

With `p = R^T g`, a sound sensor reads `f = b_f + m p` and `t = b_t + m c x p`. What may be wrong with it adds to that:

    bias of force or torque       delta, from some pose on or rising over time
    gain of the force             E p with E symmetric and without trace: axes of different gain, or cross-talk
    frame of the sensor           E p with E antisymmetric: the stated orientations are those of another frame
    gain of the torque            E p with E symmetric

A gain that all axes of the force share looks like a mass. Only a weighed tool reveals it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.camera.board_pose import skew
from calibration.constancy.change_test import Change, assess_change, find_course
from calibration.constancy.linear_model import STEP, STRETCH, THROUGHOUT, LinearModel, courses

FALSE_ALARMS = 0.01
"""Probability that a sound sensor is named faulty."""
_LEAST_VARIANCE = 0.1
"""Least variance of the errors over that of a sound sensor's; smaller errors are those of perfect data."""
_ROOT = np.sqrt(0.5)
_SYMMETRIC = np.array(
    [
        [[0, 0, 0], [0, 0, _ROOT], [0, _ROOT, 0]],
        [[0, 0, _ROOT], [0, 0, 0], [_ROOT, 0, 0]],
        [[0, _ROOT, 0], [_ROOT, 0, 0], [0, 0, 0]],
        np.diag([_ROOT, -_ROOT, 0]),
        np.diag([1, 1, -2]) / np.sqrt(6),
        np.eye(3) / np.sqrt(3),
    ]
)
"""An orthonormal basis of the symmetric matrices; the last has a trace."""
_CURES = {
    "force": "let the sensor warm up, do not zero it meanwhile, and record again",
    "torque": "let the sensor warm up, do not zero it meanwhile, and record again",
    "force gain": "use the sensor's own calibration matrix, or have it calibrated",
    "torque gain": "use the sensor's own calibration matrix, or have it calibrated",
    "frame": "give the orientations of the frame that the sensor's axes are in",
}


@dataclass(frozen=True, eq=False)
class WrenchFault:
    """Result of the test.

    Attributes:
        change: The most likely fault, significant or not.
        names: Names of all poses, in order.
        mass: Mass of the tool as if the sensor were sound [kg].
        gravity: Acceleration [m/s^2].
        limits: Largest changes of force [N] and torque [Nm] that do not matter.
    """

    change: Change
    names: tuple[str, ...]
    mass: float
    gravity: float
    limits: tuple[float, float]

    @property
    def found(self) -> bool:
        """Whether the sensor is named faulty."""
        return self.change.is_significant(FALSE_ALARMS)

    @property
    def matters(self) -> bool:
        """Whether the fault is large enough to spoil the result."""
        return self.found and self._size > self.limits[self.change.course.cause.startswith("torque")]

    def summary(self) -> str:
        """Return what is wrong, when and how much, and what to do about it."""
        change, cause = self.change, self.change.course.cause
        rate = f"(p = {change.p:.4f}, named below {FALSE_ALARMS})"
        return f"{self._description()} {rate}; {_CURES[cause]}"

    @property
    def _size(self) -> float:
        """Largest change of the reading [N or Nm]."""
        size = float(np.linalg.norm(self.change.delta))
        return size * self.gravity if self.change.course.kind == THROUGHOUT else size

    def _description(self) -> str:
        change, cause = self.change, self.change.course.cause
        if cause == "frame":
            angle = float(np.linalg.norm(change.delta)) / self.mass
            return f"the sensor's frame is turned by {np.degrees(angle):.1f} deg against the stated orientations"
        if cause == "force gain":
            E = np.einsum("k,kij->ij", change.delta, _SYMMETRIC[:5]) / self.mass
            gains = ", ".join(f"{axis} {1.0 + gain:.3f}" for axis, gain in zip("xyz", np.diag(E), strict=True))
            talk = np.abs(E - np.diag(np.diag(E))).max()
            return f"the force axes have different gains: {gains} of their mean, cross-talk {100 * talk:.1f} %"
        if cause == "torque gain":
            return f"the torque axes have different gains: errors up to {self._size:.3f} Nm"
        unit = "Nm" if cause == "torque" else "N"
        size = f"{np.linalg.norm(change.delta):.2g} {unit}"
        if change.course.kind == STEP:
            before, after = (self.names[i] for i in change.between)
            return f"the {cause}'s bias jumped by {size} between {before} and {after}"
        if change.course.kind == STRETCH:
            first, last = self.names[change.course.first], self.names[change.course.back - 1]
            return f"the {cause}'s bias was off by {size} from about {first} to {last}"
        return f"the {cause}'s bias drifted by {size} from {self.names[0]} to {self.names[-1]}"


def find_wrench_fault(
    pulls: np.ndarray,
    wrenches: np.ndarray,
    noise: tuple[float, float],
    names: Sequence[str],
    mass: float,
    limits: tuple[float, float],
) -> WrenchFault | None:
    """Test a sensor.

    Args:
        pulls: Gravity in the sensor's frame at each pose, in order of time [m/s^2], shape (n, 3).
        wrenches: Readings: force [N] and torque [Nm], shape (n, 6).
        noise: Noise of force and torque, as if the sensor were sound [N, Nm].
        names: Names of the poses.
        mass: Mass of the tool as if the sensor were sound, not 0 [kg].
        limits: Largest changes of force [N] and torque [Nm] that do not matter.

    Returns:
        The result; None if there are too few poses for a test.
    """
    n, unit = len(pulls), 1.0 / np.repeat(noise, 3)
    constant = np.broadcast_to(np.eye(3), (n, 3, 3))
    symmetric = np.einsum("kij,nj->nik", _SYMMETRIC, pulls)

    def rows(force: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """Return columns of force and torque in standard deviations, shape (n, 6, columns)."""
        both = np.zeros((n, 6, force.shape[2] + torque.shape[2]))
        both[:, :3, : force.shape[2]], both[:, 3:, force.shape[2] :] = force, torque
        return both * unit[:, None]

    nothing = np.zeros((n, 3, 0))
    sound = rows(
        np.concatenate((constant, pulls[:, :, None]), axis=2), np.concatenate((constant, -skew(pulls)), axis=2)
    )
    causes = {
        "force": rows(constant, nothing),
        "torque": rows(nothing, constant),
        "force gain": rows(symmetric[:, :, :5], nothing),
        "torque gain": rows(nothing, symmetric),
        "frame": rows(-skew(pulls), nothing),
    }
    model = LinearModel(sound, wrenches * unit, causes, least_variance=_LEAST_VARIANCE)
    candidates = courses(("force", "torque"), np.arange(n, dtype=float), ("force gain", "torque gain", "frame"))
    found = find_course(model, candidates)
    change = assess_change(model, candidates, *found) if found is not None else None
    gravity = float(np.linalg.norm(pulls[0]))
    return None if change is None else WrenchFault(change, tuple(names), mass, gravity, limits)
