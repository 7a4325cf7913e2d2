"""Joint angles that bring the arm of a model to a pose."""

from __future__ import annotations

import mujoco
import numpy as np

from robot_rl.errors import ConfigError
from sim.arm.place import ArmPlace

APART = 0.5
"""Largest distance of the first start angles from the ready pose [rad]."""
NEARBY = 10
"""How many starts are near the ready pose; later ones are up to half a turn of each joint from it."""


class OutOfReachError(ConfigError, ValueError):
    """A pose that this arm does not reach, wherever it stands."""


def solve_ik(
    model: mujoco.MjModel,
    site: str,
    position: np.ndarray,
    quaternion: np.ndarray,
    tolerance: float = 1e-6,
    starts: int = 30,
) -> np.ndarray:
    """Compute joint angles that bring a site to a pose, by damped least squares from the ready pose.

    If that fails, the search restarts from a fixed sequence of angles, at first near the ready pose.

    Args:
        model: Model that holds one arm, its joints before all others.
        site: Name of the site, e.g. `tcp`.
        position: Wanted position in the base frame [m], shape (3,).
        quaternion: Wanted orientation (w, x, y, z), shape (4,).
        tolerance: Largest residual error, [m] and [rad] alike.
        starts: Largest number of starts; with 1, only poses with a similar elbow posture are found.

    Returns:
        The angles of the arm's n joints, shape (n,).

    Raises:
        OutOfReachError: if the pose is out of reach.
    """
    rng, least, place = np.random.default_rng(0), np.inf, ArmPlace.of(model)
    low, high = model.jnt_range[place.joints].T
    for start in range(starts):
        q = place.ready
        if start >= NEARBY:
            q = rng.uniform(np.maximum(low, q - np.pi), np.minimum(high, q + np.pi))
        elif start:
            q = q + rng.uniform(-APART, APART, place.count)
        q, error = _descend(model, place, site, position, quaternion, tolerance, q)
        if error < tolerance:
            return _unwound(q, place.ready, low, high)
        least = min(least, error)
    raise OutOfReachError(
        f"no joint angles bring {site} to {np.round(position, 3).tolist()} m, the nearest are off by {least:.3f}; "
        "take a pose in reach, or bring an arm of a file nearer by `position` and `turn` (docs/tasks.md, another arm)"
    )


def _unwound(q: np.ndarray, ready: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the same pose of each joint without whole turns away from the ready pose, where its limits allow that."""
    turned = q + 2.0 * np.pi * np.round((ready - q) / (2.0 * np.pi))
    return np.where((turned >= low) & (turned <= high), turned, q)


def _descend(
    model: mujoco.MjModel,
    place: ArmPlace,
    site: str,
    position: np.ndarray,
    quaternion: np.ndarray,
    tolerance: float,
    start: np.ndarray,
) -> tuple[np.ndarray, float]:
    """Return joint angles by damped least squares from `start`, and the largest residual error, [m] and [rad] alike."""
    data = mujoco.MjData(model)
    low, high = model.jnt_range[place.joints].T
    q = data.qpos[place.qpos]
    q[:] = np.clip(start, low, high)
    site_id = model.site(site).id
    jacobian, current, difference = np.zeros((6, model.nv)), np.zeros(4), np.zeros(3)
    for _ in range(200):
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mju_mat2Quat(current, data.site_xmat[site_id])
        mujoco.mju_subQuat(difference, quaternion, current)  # in the site's frame
        error = np.concatenate((position - data.site_xpos[site_id], data.site_xmat[site_id].reshape(3, 3) @ difference))
        if np.abs(error).max() < tolerance:
            break
        mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], site_id)
        J = jacobian[:, place.dof]
        step = J.T @ np.linalg.solve(J @ J.T + 1e-6 * np.eye(6), error)
        q[:] = np.clip(q + step, low, high)
    return q.copy(), float(np.abs(error).max())
