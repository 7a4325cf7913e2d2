"""Identification of a simulated arm: friction, damping, stiffness and delay that make it move like the real arm.

The recorded motions are played back in simulation. Nonlinear least squares minimises the pose differences over the
whole of each motion. The simulator is passed in as a `Playback`, so this module imports none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy.optimize import least_squares

from calibration.result import Quality, SimulatedArm
from robot_rl.config.components import SimulationConfig
from robot_rl.env.playback import Motion, Playback
from robot_rl.errors import CalibrationError
from robot_rl.geometry import Pose, quat_conjugate, quat_multiply, rotvec_from_quat

PARAMETERS = tuple(field.name for field in fields(SimulationConfig))
UNITS = ("Nm", "Nm", "Nms/rad", "Nms/rad", "N/m", "Nm/rad", "s")
MIN_MOTIONS, MIN_STEPS = 8, 150
"""Fewer motions, or steps in all of them, are refused."""
HELD_OUT = 4
"""One motion in this many is held out for the check."""
MAX_SIGMA = 0.05
"""Largest standard deviation that is good enough, relative to the value or, where that is near zero, to `_SCALES`."""
_SCALES = np.array([0.5, 0.2, 2.0, 0.5, 0.0, 0.0, 0.01])
"""Small value of each parameter, the least reference of a relative error; stiffnesses are never near zero."""
_FACTOR = 5.0
"""Largest ratio between an identified stiffness and that of the simulation."""
_LIMITS = np.array([20.0, 5.0, 100.0, 20.0, np.nan, np.nan, 0.08])
"""Upper bounds of the search; NaN where `_FACTOR` sets them."""
_DIFFERENCE = 0.01
"""Step of the numerical derivatives, relative to the scale of a parameter."""
_FEW = 5
"""Number of motions in the first, rough fit."""
_NOISE = np.repeat([1e-4, 5e-4], 3)
"""Initial standard deviation of measured poses [m, rad]."""
_MIN_TRAVEL = 0.02
"""Least distance between two poses of the tcp in all motions [m]."""


@dataclass(frozen=True, eq=False)
class ArmFit:
    """An identification and everything that its report shows.

    Attributes:
        result: The content of the result file.
        quality: Whether the result is good enough to be used.
        before: Settings of the simulation before, in the order of `PARAMETERS`.
        names: Of the motions.
        held_out: Mask of the motions kept for the check, shape (n,).
        errors_before: Root mean square of each motion's error, position [m] and rotation [rad], shape (n, 2).
        errors: The same after.
        example: Held-out motion with the largest error before: measured, before, after; positions of the tcp [m] at
            `example_seconds`, shape (3, k, 3).
        example_seconds: Shape (k,).
    """

    result: SimulatedArm
    quality: Quality
    before: np.ndarray
    names: tuple[str, ...]
    held_out: np.ndarray
    errors_before: np.ndarray
    errors: np.ndarray
    example: np.ndarray
    example_seconds: np.ndarray


def identify_arm(playback: Playback, motions: Sequence[Motion], robot: str) -> ArmFit:
    """Find the settings with which the simulated arm moves like the recorded one.

    Args:
        playback: The simulated arm.
        motions: Motions in free space; every fourth is used for the check only.
        robot: Name of the arm and controller that moved.

    Raises:
        CalibrationError: if there are too few motions, or they are too short or too small.
    """
    _check_motions(motions)
    held_out = np.arange(len(motions)) % HELD_OUT == HELD_OUT - 1
    used = [motion for motion, out in zip(motions, held_out, strict=True) if not out]
    before = _vector(playback.own)
    problem = _FitProblem(playback, used, before)
    x, covariance = problem.solve()
    result = SimulatedArm(robot=robot, settings=_settings(x), covariance=tuple(map(tuple, covariance.tolist())))

    errors = np.array([[_rms(playback, motion, settings) for motion in motions] for settings in (before, x)])
    quality = _assess_quality(x, np.sqrt(np.diag(covariance)), problem, errors, held_out)
    shown = int(np.argmax(np.where(held_out, errors[0, :, 0], -1.0)))
    motion = motions[shown]
    paths = (motion.poses, *(playback(motion, _settings(settings)) for settings in (before, x)))
    example = np.array([[pose.position for pose in path] for path in paths])
    seconds = (motion.stamps - motion.stamps[0]) / 1e9
    names = tuple(motion.name for motion in motions)
    return ArmFit(result, quality, before, names, held_out, errors[0], errors[1], example, seconds)


class _FitProblem:
    """Least squares over the errors of all motions, in units of their noise; parameters in units of `scale`."""

    def __init__(self, playback: Playback, motions: Sequence[Motion], before: np.ndarray) -> None:
        self._playback, self._motions = playback, motions
        self._noise = _NOISE.copy()
        stiff = np.isnan(_LIMITS)
        self.scale = np.where(stiff, before, 2.0 * _SCALES)
        self.low = np.where(stiff, before / _FACTOR, 0.0) / self.scale
        self.high = np.where(stiff, before * _FACTOR, np.fmax(_LIMITS, 2.0 * before)) / self.scale
        self._start = np.clip(before / self.scale, self.low, self.high)
        self._newest = np.zeros(0), np.zeros(0)  # parameters, and their residuals

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the parameters and their covariance.

        Three fits: a rough one to a few motions, one to all motions, and one with the estimated noise of the poses.
        """
        x, motions = self._start, self._motions
        self._motions = motions[:: -(-len(motions) // _FEW)]
        x = self._fit(x)
        self._motions = motions
        x = self._fit(x)
        left = self._errors(x)
        # The median of a normal number's size is 0.674 standard deviations.
        self._noise = np.maximum(np.repeat([np.median(np.abs(left[:, part])) for part in _PARTS], 3) / 0.674, 1e-7)
        x = self._fit(x)
        J, residuals = self._jacobian(x), np.abs(self._residuals(x))
        # A parameter that the motions do not determine gets a huge variance; the inverse must still exist.
        information = J.T @ J + 1e-12 * np.eye(len(x))
        rms = np.sqrt(np.mean(np.minimum(residuals, 5.0) ** 2))
        covariance = max(1.0, float(rms)) ** 2 * np.linalg.inv(information)
        return x * self.scale, covariance * np.outer(self.scale, self.scale)

    def _fit(self, x: np.ndarray) -> np.ndarray:
        bounds = self.low, self.high
        found: np.ndarray = least_squares(
            self._residuals, x, self._jacobian, bounds, loss="soft_l1", f_scale=2.0, xtol=1e-4, ftol=1e-5, max_nfev=30
        ).x
        return found

    def at_limit(self, x: np.ndarray) -> list[str]:
        """Return the parameters that ended at their upper bound or, for stiffnesses, at their lower bound."""
        scaled = x / self.scale
        ended = (scaled > self.high * (1 - 1e-3)) | ((self.low > 0) & (scaled < self.low * (1 + 1e-3)))
        return [name for name, at_end in zip(PARAMETERS, ended, strict=True) if at_end]

    def _errors(self, x: np.ndarray) -> np.ndarray:
        """Return the errors of all poses after the first of each motion [m, rad], shape (n, 6)."""
        settings = _settings(x * self.scale)
        return np.concatenate([_differences(motion, self._playback(motion, settings)) for motion in self._motions])

    def _residuals(self, x: np.ndarray) -> np.ndarray:
        self._newest = x.copy(), (self._errors(x) / self._noise).ravel()
        return self._newest[1]

    def _jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the derivatives of the residuals by finite differences that stay inside the bounds."""
        at, here = self._newest  # the search has played back there just before
        if not np.array_equal(at, x):
            here = self._residuals(x)
        columns = []
        for i in range(len(x)):
            there, step = x.copy(), _DIFFERENCE if x[i] + _DIFFERENCE < self.high[i] else -_DIFFERENCE
            there[i] += step
            columns.append((self._residuals(there) - here) / step)
        return np.stack(columns, axis=1)


_PARTS = (slice(0, 3), slice(3, 6))
"""Position and rotation."""


def _differences(motion: Motion, poses: Sequence[Pose]) -> np.ndarray:
    """Return played-back minus measured poses, without the first, [m, rad], shape (n, 6)."""
    rows = []
    for measured, played in zip(motion.poses[1:], poses[1:], strict=True):
        turn = quat_multiply(quat_conjugate(measured.quaternion), played.quaternion)
        rows.append(np.concatenate((played.position - measured.position, rotvec_from_quat(turn))))
    return np.array(rows)


def _rms(playback: Playback, motion: Motion, x: np.ndarray) -> np.ndarray:
    """Return the root mean square length of the position [m] and rotation [rad] errors, shape (2,)."""
    left = _differences(motion, playback(motion, _settings(x)))
    return np.array([np.sqrt((left[:, part] ** 2).sum(axis=1).mean()) for part in _PARTS])


def _check_motions(motions: Sequence[Motion]) -> None:
    steps = sum(len(motion.poses) - 1 for motion in motions)
    if len(motions) < MIN_MOTIONS or steps < MIN_STEPS:
        raise CalibrationError(
            f"{len(motions)} free motions with {steps} steps, needed are {MIN_MOTIONS} with {MIN_STEPS}; record more "
            "episodes in which the arm moves before it touches anything, fast and slow"
        )
    positions = np.concatenate([[pose.position for pose in motion.poses] for motion in motions])
    if (travel := float(np.linalg.norm(np.ptp(positions, axis=0)))) < _MIN_TRAVEL:
        raise CalibrationError(
            f"the arm moved within {1e3 * travel:.1f} mm, needed are {1e3 * _MIN_TRAVEL:.0f} mm; move it more"
        )


def _assess_quality(
    x: np.ndarray, sigma: np.ndarray, problem: _FitProblem, errors: np.ndarray, held_out: np.ndarray
) -> Quality:
    (used_before, used), (out_before, out) = (
        np.sqrt((errors[:, part] ** 2).mean(axis=1)) for part in (~held_out, held_out)
    )
    figures = {
        "motions": float(len(held_out)),
        "held_out_motions": float(held_out.sum()),
        "rms_before_mm": 1e3 * used_before[0],
        "rms_mm": 1e3 * used[0],
        "held_out_rms_before_mm": 1e3 * out_before[0],
        "held_out_rms_mm": 1e3 * out[0],
        "held_out_rms_before_deg": float(np.degrees(out_before[1])),
        "held_out_rms_deg": float(np.degrees(out[1])),
    }
    figures = {name: float(value) for name, value in figures.items()}
    relative = sigma / np.maximum(x, _SCALES)
    unsure = [
        f"{name} ({100 * share:.0f} %)"
        for name, share in zip(PARAMETERS, relative, strict=True)
        if not share <= MAX_SIGMA
    ]
    if limits := problem.at_limit(x):
        return Quality(
            False,
            f"{', '.join(limits)} ended at the limit of the search: the model does not fit these motions; "
            "check the task, the tool and the units of the recording",
            figures,
        )
    if unsure:
        return Quality(
            False,
            f"these motions do not determine: {', '.join(unsure)} (standard deviation; limit {100 * MAX_SIGMA:.0f} %); "
            "record motions that also turn the tool, fast and slow, with changes of direction",
            figures,
        )
    if not (out <= 1.02 * out_before).all():
        return Quality(
            False,
            "on held-out motions the simulation is not better than before; record more and more varied motions",
            figures,
        )
    gain = f"{1e3 * out_before[0]:.2f} -> {1e3 * out[0]:.2f} mm, {np.degrees(out_before[1]):.3f} -> "
    return Quality(True, f"good: on held-out motions {gain}{np.degrees(out[1]):.3f} deg (root mean square)", figures)


def _vector(settings: SimulationConfig) -> np.ndarray:
    return np.array([getattr(settings, name) for name in PARAMETERS], dtype=float)


def _settings(x: np.ndarray) -> SimulationConfig:
    return SimulationConfig(**dict(zip(PARAMETERS, x.tolist(), strict=True)))
