"""Rotations and poses, in plain numpy.

Conventions, stated once for the whole project:

- A quaternion is `(w, x, y, z)`, of unit length. `q` and `-q` are the same rotation. ROS messages use `(x, y, z, w)`;
  the conversion lives in `ros_nodes/interface/convert.py` and nowhere else.
- `T_a_b` is the pose of frame `b` in frame `a`; it maps coordinates in `b` to coordinates in `a`, and
  `T_a_c = T_a_b @ T_b_c`: inner letters cancel.
- A rotation vector is axis times angle [rad]. A twist or wrench is `(linear, angular)`, `(force, torque)`.

The arithmetic is done on plain floats: on three or four numbers, numpy's own is several times slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def quat_multiply(a: Array, b: Array) -> Array:
    """Return the Hamilton product `a * b` of two quaternions, shape (4,)."""
    aw, ax, ay, az = a.tolist()
    bw, bx, by, bz = b.tolist()
    return np.array(
        (
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        )
    )


def quat_conjugate(q: Array) -> Array:
    """Return the inverse of a unit quaternion, shape (4,)."""
    w, x, y, z = q.tolist()
    return np.array((w, -x, -y, -z))


def quat_rotate(q: Array, v: Array) -> Array:
    """Rotate vector `v`, shape (3,), by unit quaternion `q`, shape (4,): `v + w t + u x t` with `t = 2 u x v`."""
    w, x, y, z = q.tolist()
    vx, vy, vz = v.tolist()
    tx, ty, tz = 2.0 * (y * vz - z * vy), 2.0 * (z * vx - x * vz), 2.0 * (x * vy - y * vx)
    return np.array(
        (
            vx + w * tx + y * tz - z * ty,
            vy + w * ty + z * tx - x * tz,
            vz + w * tz + x * ty - y * tx,
        )
    )


def quat_to_matrix(q: Array) -> Array:
    """Return the rotation matrix of a unit quaternion. Shape (3, 3)."""
    w, x, y, z = q.tolist()
    return np.array(
        (
            (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
            (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
            (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
        )
    )


def quat_from_matrix(R: Array) -> Array:
    """Return the unit quaternion of a rotation matrix, by its largest component (Shepperd 1978). Shape (4,)."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.tolist()
    trace = xx + yy + zz
    largest = max(trace, xx, yy, zz)
    if largest == trace:
        q = (1.0 + trace, zy - yz, xz - zx, yx - xy)
    elif largest == xx:
        q = (zy - yz, 1.0 + xx - yy - zz, yx + xy, zx + xz)
    elif largest == yy:
        q = (xz - zx, yx + xy, 1.0 + yy - zz - xx, zy + yz)
    else:
        q = (yx - xy, zx + xz, zy + yz, 1.0 + zz - xx - yy)
    return _unit(*q)


def quat_from_rotvec(rotvec: Array) -> Array:
    """Return the quaternion of a rotation vector [rad], the exponential map. Shape (4,)."""
    x, y, z = rotvec.tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    # sin(a/2)/a -> 1/2 - a^2/48 for small a.
    factor = math.sin(0.5 * angle) / angle if angle > 1e-6 else 0.5 - angle * angle / 48.0
    return np.array((math.cos(0.5 * angle), factor * x, factor * y, factor * z))


def rotvec_from_quat(q: Array) -> Array:
    """Return the rotation vector of a quaternion, the logarithm, with angle in [0, pi]. Shape (3,) [rad]."""
    w, x, y, z = q.tolist()
    sine = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 * math.atan2(sine, abs(w)) / sine if sine > 1e-9 else 2.0
    factor = math.copysign(factor, w)
    return np.array((factor * x, factor * y, factor * z))


def _unit(w: float, x: float, y: float, z: float) -> Array:
    """Return the quaternion scaled to unit length."""
    scale = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    return np.array((scale * w, scale * x, scale * y, scale * z))


@dataclass(frozen=True, eq=False)
class Pose:
    """Position [m], shape (3,), and unit quaternion (w, x, y, z), shape (4,), of one frame in another."""

    position: Array
    quaternion: Array

    @classmethod
    def identity(cls) -> Pose:
        """Return the pose of a frame in itself."""
        return cls(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))

    @classmethod
    def from_rotvec(cls, position: Array, rotvec: Array) -> Pose:
        """Make a pose from a position [m] and a rotation vector [rad]."""
        return cls(np.asarray(position, dtype=float), quat_from_rotvec(np.asarray(rotvec, dtype=float)))

    def __matmul__(self, other: Pose) -> Pose:
        """Compose two poses: `T_a_c = T_a_b @ T_b_c`."""
        position = self.position + quat_rotate(self.quaternion, other.position)
        return Pose(position, _unit(*quat_multiply(self.quaternion, other.quaternion).tolist()))

    def inverse(self) -> Pose:
        """Return `T_b_a` of `T_a_b`."""
        inverse = quat_conjugate(self.quaternion)
        return Pose(-quat_rotate(inverse, self.position), inverse)

    @property
    def rotvec(self) -> Array:
        """Return the rotation vector [rad], shape (3,)."""
        return rotvec_from_quat(self.quaternion)

    @property
    def matrix(self) -> Array:
        """Return the rotation matrix, shape (3, 3)."""
        return quat_to_matrix(self.quaternion)

    def carry_wrench(self, wrench: Array) -> Array:
        """Return a wrench (force, torque) at the origin of frame `b`, in the axes of `a` and about its origin.

        As `T_a_b`: the force is `R f`, the torque `R t + p x R f` (Lynch and Park, Modern Robotics, 2017, 3.4).

        Args:
            wrench: In the axes of `b`, about its origin [N, Nm]. Shape (6,).
        """
        force, torque = quat_rotate(self.quaternion, wrench[:3]), quat_rotate(self.quaternion, wrench[3:])
        return np.concatenate((force, torque + np.cross(self.position, force)))

    def vector(self) -> Array:
        """Return position [m] and rotation vector [rad] in one vector, shape (6,)."""
        return np.concatenate((self.position, self.rotvec))


def yaw_pose(x: float, y: float, z: float, yaw: float) -> Pose:
    """Return the pose at (x, y, z) [m] turned by `yaw` [rad] about z."""
    return Pose(np.array([x, y, z]), np.array([np.cos(0.5 * yaw), 0.0, 0.0, np.sin(0.5 * yaw)]))


def swing_twist_z(q: Array) -> tuple[float, float]:
    """Split a rotation into a turn about its own z axis and a tilt of that axis.

    Returns:
        `(yaw, tilt)` [rad]: the twist about z, in [-pi, pi), and the angle between the two z axes, in [0, pi].
    """
    w, x, y, z = q.tolist()
    yaw = (2.0 * math.atan2(z, w) + math.pi) % (2.0 * math.pi) - math.pi
    return yaw, 2.0 * math.atan2(math.hypot(x, y), math.hypot(w, z))
