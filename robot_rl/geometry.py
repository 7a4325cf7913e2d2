"""Rotations and poses, in plain numpy.

Conventions, stated once for the whole project:

- A quaternion is `(w, x, y, z)`, of unit length. `q` and `-q` are the same rotation. ROS messages use `(x, y, z, w)`;
  the conversion lives in `ros_nodes/convert.py` and nowhere else.
- `T_a_b` is the pose of frame `b` in frame `a`; it maps coordinates in `b` to coordinates in `a`, and
  `T_a_c = T_a_b @ T_b_c`: inner letters cancel.
- A rotation vector is axis times angle [rad]. A twist or wrench is `(linear, angular)`, `(force, torque)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def quat_multiply(a: Array, b: Array) -> Array:
    """Hamilton product `a * b` of two quaternions, shape (4,)."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def quat_conjugate(q: Array) -> Array:
    """Inverse of a unit quaternion, shape (4,)."""
    return np.array([q[0], -q[1], -q[2], -q[3]])


def quat_rotate(q: Array, v: Array) -> Array:
    """Rotates vector `v`, shape (3,), by quaternion `q`, shape (4,)."""
    return quat_to_matrix(q) @ v


def quat_to_matrix(q: Array) -> Array:
    """Rotation matrix of a unit quaternion. Shape (3, 3)."""
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def quat_from_matrix(R: Array) -> Array:
    """Unit quaternion of a rotation matrix, by the largest of the four components (Shepperd 1978). Shape (4,)."""
    trace = R[0, 0] + R[1, 1] + R[2, 2]
    squares = np.array([trace, R[0, 0], R[1, 1], R[2, 2]])
    largest = int(np.argmax(squares))
    s = np.sqrt(max(1.0 + 2.0 * squares[largest] - trace, 0.0))
    q = np.empty(4)
    if largest == 0:
        s = np.sqrt(1.0 + trace)
        q[:] = s, (R[2, 1] - R[1, 2]) / s, (R[0, 2] - R[2, 0]) / s, (R[1, 0] - R[0, 1]) / s
    else:
        i = largest - 1
        j, k = (i + 1) % 3, (i + 2) % 3
        q[0] = (R[k, j] - R[j, k]) / s
        q[1 + i] = s
        q[1 + j] = (R[j, i] + R[i, j]) / s
        q[1 + k] = (R[k, i] + R[i, k]) / s
    return q / np.linalg.norm(q)


def quat_from_rotvec(rotvec: Array) -> Array:
    """Quaternion of a rotation vector [rad], the exponential map. Shape (4,)."""
    angle = float(np.linalg.norm(rotvec))
    # sin(a/2)/a -> 1/2 - a^2/48 for small a.
    factor = np.sin(0.5 * angle) / angle if angle > 1e-6 else 0.5 - angle * angle / 48.0
    return np.concatenate(([np.cos(0.5 * angle)], factor * np.asarray(rotvec)))


def rotvec_from_quat(q: Array) -> Array:
    """Rotation vector of a quaternion, the logarithm, with angle in [0, pi]. Shape (3,) [rad]."""
    w, xyz = (q[0], q[1:]) if q[0] >= 0 else (-q[0], -q[1:])
    sine = float(np.linalg.norm(xyz))
    if sine < 1e-9:
        return 2.0 * xyz
    return (2.0 * np.arctan2(sine, w) / sine) * xyz


@dataclass(frozen=True, eq=False)
class Pose:
    """Position [m], shape (3,), and unit quaternion (w, x, y, z), shape (4,), of one frame in another."""

    position: Array
    quaternion: Array

    @classmethod
    def identity(cls) -> Pose:
        """The pose of a frame in itself."""
        return cls(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))

    @classmethod
    def from_rotvec(cls, position: Array, rotvec: Array) -> Pose:
        """Pose from a position [m] and a rotation vector [rad]."""
        return cls(np.asarray(position, dtype=float), quat_from_rotvec(np.asarray(rotvec, dtype=float)))

    def __matmul__(self, other: Pose) -> Pose:
        """Composition: `T_a_c = T_a_b @ T_b_c`."""
        position = self.position + quat_rotate(self.quaternion, other.position)
        quaternion = quat_multiply(self.quaternion, other.quaternion)
        return Pose(position, quaternion / np.linalg.norm(quaternion))

    def inverse(self) -> Pose:
        """`T_b_a` from `T_a_b`."""
        inverse = quat_conjugate(self.quaternion)
        return Pose(-quat_rotate(inverse, self.position), inverse)

    @property
    def rotvec(self) -> Array:
        """Rotation vector [rad], shape (3,)."""
        return rotvec_from_quat(self.quaternion)

    @property
    def matrix(self) -> Array:
        """Rotation matrix, shape (3, 3)."""
        return quat_to_matrix(self.quaternion)

    def vector(self) -> Array:
        """Position [m] and rotation vector [rad] in one vector, shape (6,)."""
        return np.concatenate((self.position, self.rotvec))


def yaw_pose(x: float, y: float, z: float, yaw: float) -> Pose:
    """Pose at (x, y, z) [m] turned by `yaw` [rad] about z."""
    return Pose(np.array([x, y, z]), np.array([np.cos(0.5 * yaw), 0.0, 0.0, np.sin(0.5 * yaw)]))


def swing_twist_z(q: Array) -> tuple[float, float]:
    """Splits a rotation into a turn about its own z axis and a tilt of that axis.

    Returns:
        `(yaw, tilt)` [rad]: the twist about z, in (-pi, pi], and the angle between the two z axes, in [0, pi].
    """
    yaw = 2.0 * np.arctan2(q[3], q[0])
    yaw = (yaw + np.pi) % (2.0 * np.pi) - np.pi
    tilt = 2.0 * np.arctan2(np.hypot(q[1], q[2]), np.hypot(q[0], q[3]))
    return float(yaw), float(tilt)
