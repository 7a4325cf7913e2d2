"""Calibration of a wrench sensor and its tool: bias, mass and centre of mass, from poses at rest.

With nothing touching the tool, the sensor reads `f = b_f + m R^T g` and `t = b_t + m c x R^T g`, with R the sensor's
orientation in the base frame: linear in (b_f, m) and in (b_t, m c). `wrench_fault.py` tests whether the sensor does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.arm.wrench_fault import WrenchFault, find_wrench_fault
from calibration.camera.board_pose import HUBER, skew
from calibration.result import Quality, ToolWrench
from robot_rl.errors import CalibrationError

GRAVITY = np.array([0.0, 0.0, -9.81])
MIN_POSES = 8
MAX_MASS_SIGMA, MAX_CENTER_SIGMA = 0.01, 2e-3
"""Largest accepted standard deviation: of the mass, relative, and of its centre [m]."""
MAX_GAIN_ERROR = 0.01
"""Largest accepted error of the gain of the force, by a weighed tool."""
_SURE = 2.576
"""Standard deviations that an estimate is off by chance in 1 % of all cases."""
_MIN_SPREAD = 0.2
"""Least root mean square change of gravity's direction in the sensor along each axis, 1 being all of it."""
_OUTLIER = 6.0
"""Distance in standard deviations above which a reading is left out."""


@dataclass(frozen=True, eq=False)
class WrenchFit:
    """A wrench calibration and everything that its report shows.

    Attributes:
        result: The content of the result file.
        quality: Whether the result is good enough to be used.
        used: Mask of the poses in use, shape (n,).
        errors: Residual of each after compensation [N, Nm], shape (n, 6).
        held_out: Residual of each when it is predicted from the others [N, Nm], shape (n, 6).
        fault: The test of the sensor; None if there are too few poses for it.
    """

    result: ToolWrench
    quality: Quality
    used: np.ndarray
    errors: np.ndarray
    held_out: np.ndarray
    fault: WrenchFault | None


def calibrate_wrench(
    rotations: np.ndarray,
    wrenches: np.ndarray,
    robot: str,
    *,
    gravity: np.ndarray = GRAVITY,
    names: Sequence[str] = (),
    weighed: float | None = None,
) -> WrenchFit:
    """Find bias, mass and centre of mass.

    Args:
        rotations: Orientations of the sensor in the base frame, the arm at rest, in order of time, shape (n, 3, 3).
        wrenches: Readings: force [N] and torque [Nm] in the sensor's frame, shape (n, 6).
        robot: Name of the arm and tool.
        gravity: In the base frame [m/s^2], shape (3,).
        names: Names of the poses; their numbers if empty.
        weighed: Mass of the tool beyond the sensor by a scale [kg], which reveals a wrong gain of the force; None if it
            was not weighed.

    Raises:
        CalibrationError: if there are too few poses, they are too alike or contradict each other, the sign or frame of
            the sensor is wrong, or `weighed` is no mass.
    """
    if weighed is not None and not 0.0 < weighed < np.inf:
        raise CalibrationError(f"the weighed mass is {weighed} kg, must be a number above 0")
    names = list(names) or [f"pose {i}" for i in range(len(wrenches))]
    if len(wrenches) < MIN_POSES:
        raise CalibrationError(f"{len(wrenches)} poses, needed are {MIN_POSES}, better 20, tilted to all sides")
    pulls = np.swapaxes(rotations, 1, 2) @ gravity
    used, rejected = np.ones(len(wrenches), bool), dict[str, str]()
    _check_spread(pulls)
    while True:
        force = _Linear(_force_terms(pulls[used]), wrenches[used, :3])
        torque = _Linear(_torque_terms(pulls[used]), wrenches[used, 3:])
        sizes = np.maximum(force.sizes(), torque.sizes())
        worst = int(sizes.argmax())
        if sizes[worst] < _OUTLIER or used.sum() <= max(MIN_POSES, 0.67 * len(used)):
            break
        number = int(np.flatnonzero(used)[worst])
        rejected[names[number]] = (
            f"contradicts the others by {sizes[worst]:.0f} standard deviations; was the tool touched?"
        )
        used[number] = False
    mass, mass_sigma = float(force.x[3]), float(np.sqrt(force.covariance[3, 3]))
    weight = abs(mass) * float(np.linalg.norm(gravity))
    limits = MAX_MASS_SIGMA * weight, MAX_CENTER_SIGMA * weight
    fault = find_wrench_fault(pulls, wrenches, (force.noise, torque.noise), names, mass, limits)
    if sizes[worst] >= _OUTLIER:
        if fault is not None and fault.matters:
            raise CalibrationError(fault.summary())
        raise CalibrationError(
            f"more than a third of the poses contradict the others, among them {', '.join(list(rejected)[:5])}; check "
            "that nothing touches the tool, that the arm is at rest, and that the orientations are the sensor's"
        )
    _check_spread(pulls[used])
    if mass < -3.0 * mass_sigma:
        raise CalibrationError(
            f"the tool's mass comes out as {mass:.3f} kg: the sensor gives the opposite sign (the force that the tool "
            "exerts is needed), or the orientations are those of the base in the sensor's frame"
        )
    if mass < 3.0 * mass_sigma:
        raise CalibrationError(
            f"the tool's mass, {mass:.3f} +- {2 * mass_sigma:.3f} kg (2 sigma), cannot be distinguished from zero; if "
            "there is a tool, check that the wrench is not compensated already"
        )
    return _conclude(force, torque, robot, gravity, used, rejected, fault, weighed)


class _Linear:
    """Least squares `A x = y` for blocks of three rows, one per pose, with Huber's weights for whole poses."""

    def __init__(self, A: np.ndarray, y: np.ndarray) -> None:
        self._A = A
        weights = np.ones(len(A))
        for _ in range(20):
            normal = np.einsum("n,nki,nkj->ij", weights, A, A)
            self.x = np.linalg.solve(normal, np.einsum("n,nki,nk->i", weights, A, y))
            self.errors = y - A @ self.x
            lengths = np.linalg.norm(self.errors, axis=1)
            # The median length of a vector of three normal numbers is 1.538 standard deviations.
            freedom = 1.0 - len(self.x) / (3.0 * len(A))
            self.typical = max(float(np.median(lengths)) / (1.538 * np.sqrt(freedom)), 1e-9)
            weights = np.minimum(1.0, HUBER * np.sqrt(3.0) / np.maximum(lengths / self.typical, 1e-12))
        rms = np.sqrt((self.errors**2).sum() / (3 * len(A) - len(self.x)))
        self.noise = max(float(rms), 1e-9)
        self.covariance = self.noise**2 * np.linalg.inv(normal)

    def sizes(self) -> np.ndarray:
        """Return the errors in units of the typical noise, shape (n,)."""
        return np.asarray(np.linalg.norm(self.errors, axis=1) / (np.sqrt(3.0) * self.typical))

    def held_out(self) -> np.ndarray:
        """Return the errors of each pose when it is predicted from the others, shape (n, 3), by the hat matrix."""
        inverse = self.covariance / self.noise**2
        hats = np.eye(3) - self._A @ inverse @ np.swapaxes(self._A, 1, 2)
        return np.linalg.solve(hats, self.errors[:, :, None])[:, :, 0]


def _force_terms(pulls: np.ndarray) -> np.ndarray:
    """Return the derivative of the force by (bias, mass), shape (n, 3, 4)."""
    return np.concatenate((np.broadcast_to(np.eye(3), (len(pulls), 3, 3)), pulls[:, :, None]), axis=2)


def _torque_terms(pulls: np.ndarray) -> np.ndarray:
    """Return the derivative of the torque by (bias, mass times centre of mass), shape (n, 3, 6)."""
    return np.concatenate((np.broadcast_to(np.eye(3), (len(pulls), 3, 3)), -skew(pulls)), axis=2)


def _check_spread(pulls: np.ndarray) -> None:
    directions = pulls / np.linalg.norm(pulls, axis=1, keepdims=True)
    spread = np.sqrt(np.maximum(np.linalg.eigvalsh(np.cov(directions.T, bias=True)), 0.0))
    if spread[1] < _MIN_SPREAD:
        raise CalibrationError(
            f"the sensor was turned too little: gravity's direction in it changed by {spread[1]:.2f} along the second "
            f"axis (root mean square), needed is {_MIN_SPREAD}; add poses tilted by 45 deg or more, to all sides"
        )


def _conclude(
    force: _Linear,
    torque: _Linear,
    robot: str,
    gravity: np.ndarray,
    used: np.ndarray,
    rejected: dict[str, str],
    fault: WrenchFault | None,
    weighed: float | None,
) -> WrenchFit:
    mass, moment = float(force.x[3]), torque.x[3:]
    center = moment / mass
    # (b_f, b_t, mass, centre) as a function of the fitted parameters; centre = moment / mass.
    J = np.zeros((10, 10))
    J[:3, :3] = J[3:6, 4:7] = np.eye(3)
    J[6, 3] = 1.0
    J[7:, 3], J[7:, 7:] = -center / mass, np.eye(3) / mass
    fitted = np.zeros((10, 10))
    fitted[:4, :4], fitted[4:, 4:] = force.covariance, torque.covariance
    covariance = J @ fitted @ J.T
    sigma = np.sqrt(np.diag(covariance))
    held_out = np.hstack((force.held_out(), torque.held_out()))
    figures = {
        "poses": float(used.sum()),
        "poses_rejected": float(len(rejected)),
        "mass_kg": mass,
        "sigma_mass_percent": 100 * sigma[6] / mass,
        "sigma_center_mm": 1e3 * float(sigma[7:].max()),
        "force_noise_n": force.noise,
        "torque_noise_nm": torque.noise,
        "held_out_force_rms_n": float(np.sqrt(np.mean(held_out[:, :3] ** 2))),
        "held_out_torque_rms_nm": float(np.sqrt(np.mean(held_out[:, 3:] ** 2))),
    }
    if fault is not None:
        figures["fault_p"] = fault.change.p
    problems, notes = list[str](), list[str]()
    if fault is not None and fault.found:
        (problems if fault.matters else notes).append(fault.summary())
    if weighed is None:
        notes.append("mass and centre hold if the sensor's gain does: weigh the tool, and give --mass to check it")
    else:
        gain, gain_sigma = mass / weighed, sigma[6] / weighed
        figures |= {"gain": gain, "sigma_gain": gain_sigma}
        stated = f"{gain:.3f} +- {2 * gain_sigma:.3f} (2 sigma) by the weighed {weighed:g} kg"
        if abs(gain - 1.0) > max(MAX_GAIN_ERROR, _SURE * gain_sigma):
            problems.append(f"the gain of the force is {stated}: correct the sensor's gain, and record again")
        else:
            notes.append(f"the gain of the force is {stated}")
    if sigma[6] > MAX_MASS_SIGMA * mass or sigma[7:].max() > MAX_CENTER_SIGMA:
        problems.append(
            f"the mass is uncertain by {200 * sigma[6] / mass:.1f} % and its centre by {2e3 * sigma[7:].max():.1f} mm "
            "(2 sigma); add poses tilted by 45 deg or more, to all sides, and average longer"
        )
    good = (
        f"good: {mass:.4f} kg known to {200 * sigma[6] / mass:.2f} %, its centre to {2e3 * sigma[7:].max():.2f} mm (2 "
        f"sigma); the residual on held-out poses is {figures['held_out_force_rms_n']:.3f} N"
    )
    verdict = "; ".join(problems or [good, *notes])
    result = ToolWrench(
        robot=robot,
        bias=(*force.x[:3].tolist(), *torque.x[:3].tolist()),
        mass=mass,
        center_of_mass=tuple(center.tolist()),
        covariance=tuple(map(tuple, covariance.tolist())),
        gravity=tuple(np.asarray(gravity, dtype=float).tolist()),
    )
    errors = np.hstack((force.errors, torque.errors))
    return WrenchFit(result, Quality(not problems, verdict, figures, rejected), used, errors, held_out, fault)
