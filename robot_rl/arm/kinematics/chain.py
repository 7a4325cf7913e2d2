"""A serial chain of joints: the pose of its tool, and the Jacobian."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose, quat_from_matrix, quat_multiply


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint that turns about an axis, or slides along it.

    Attributes:
        name: Of the joint.
        origin: Pose of its frame in the frame of the joint before, at zero; of the first one in the base frame.
        axis: Unit vector in its frame. Shape (3,).
        low: Least position [rad, or m if it slides].
        high: Largest position.
        slides: Whether it slides.
    """

    name: str
    origin: Pose
    axis: np.ndarray
    low: float
    high: float
    slides: bool = False


def quat_from_rpy(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """Return the quaternion of URDF's `rpy`: turns about the fixed axes x, y, z, in this order [rad]. Shape (4,)."""
    about = [
        np.array([math.cos(0.5 * angle), *(math.sin(0.5 * angle) * axis)])
        for angle, axis in zip((roll, pitch, yaw), np.eye(3), strict=True)
    ]
    return quat_multiply(about[2], quat_multiply(about[1], about[0]))


class Chain:
    """Joints from the base to the tool.

    Args:
        joints: In order from the base.
        tool: Pose of the tcp in the frame of the last joint.

    Raises:
        ConfigError: if there is no joint, two have the same name, or the limits of one are not in order.
    """

    def __init__(self, joints: Sequence[Joint], tool: Pose) -> None:
        names = [joint.name for joint in joints]
        if not joints or len(set(names)) < len(names):
            raise ConfigError(f"a chain needs joints of different names, got {', '.join(names) or 'none'}")
        if wrong := [joint.name for joint in joints if not joint.low < joint.high]:
            raise ConfigError(f"the lower limit of {', '.join(wrong)} is not below the upper one")
        self.joints, self.tool = tuple(joints), tool
        self.names = tuple(names)
        self.low = np.array([joint.low for joint in joints])
        self.high = np.array([joint.high for joint in joints])
        self._slides = np.array([joint.slides for joint in joints])
        self._origins = [_matrix(joint.origin) for joint in joints]
        self._axes = [joint.axis / np.linalg.norm(joint.axis) for joint in joints]
        self._skews = [_skew(axis) for axis in self._axes]
        self._T_tool = _matrix(tool)

    @property
    def size(self) -> int:
        """Number of joints."""
        return len(self.names)

    def pose(self, position: np.ndarray) -> Pose:
        """Return the pose of the tcp in the base frame.

        Args:
            position: Of the joints [rad, m], shape (n,).
        """
        tcp, _ = self.pose_and_jacobian(position)
        return Pose(tcp[:3, 3], quat_from_matrix(tcp[:3, :3]))

    def points(self, position: np.ndarray) -> np.ndarray:
        """Return where the joints and the tool are, in the base frame [m].

        Args:
            position: Of the joints [rad, m], shape (n,).

        Returns:
            Base, joints in their order, tcp; shape (n + 2, 3).
        """
        T, points = np.eye(4), [np.zeros(3)]
        for i, q in enumerate(position.tolist()):
            T = T @ self._origins[i]
            points.append(T[:3, 3].copy())
            self._move(i, q, T)
        return np.stack([*points, (T @ self._T_tool)[:3, 3]])

    def pose_and_jacobian(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pose of the tcp as a matrix, and the Jacobian there.

        Args:
            position: Of the joints [rad, m], shape (n,).

        Returns:
            `T_base_tcp`, shape (4, 4), and the geometric Jacobian, shape (6, n): from joint velocities to the linear
            and angular velocity of the tcp, in the axes of the base (Lynch and Park, Modern Robotics, 2017, 5.1).
        """
        T = np.eye(4)
        axes, points = np.empty((self.size, 3)), np.empty((self.size, 3))
        for i, q in enumerate(position.tolist()):
            T = T @ self._origins[i]
            axes[i], points[i] = T[:3, :3] @ self._axes[i], T[:3, 3]
            self._move(i, q, T)
        T = T @ self._T_tool
        J = np.empty((6, self.size))
        turns = ~self._slides[:, None]
        J[:3] = np.where(turns, _cross(axes, T[:3, 3] - points), axes).T
        J[3:] = np.where(turns, axes, 0.0).T
        return T, J

    def _move(self, joint: int, q: float, T: np.ndarray) -> None:
        """Move the frame of a joint, shape (4, 4), by the joint's position."""
        if self._slides[joint]:
            T[:3, 3] += q * (T[:3, :3] @ self._axes[joint])
        else:  # Rodrigues' formula
            K = self._skews[joint]
            T[:3, :3] = T[:3, :3] @ (np.eye(3) + math.sin(q) * K + (1.0 - math.cos(q)) * (K @ K))

    def narrowed(self, low: np.ndarray, high: np.ndarray) -> Chain:
        """Return the same chain within limits that hold besides its own, e.g. those of a calibration. Shapes (n,).

        Raises:
            ConfigError: if a joint has no room left.
        """
        low, high = np.maximum(self.low, low), np.minimum(self.high, high)
        joints = []
        for joint, least, most in zip(self.joints, low.tolist(), high.tolist(), strict=True):
            if not least < most:
                raise ConfigError(
                    f"the calibrated range of {joint.name} does not overlap its limits in the model "
                    f"({least:.2f} to {most:.2f} rad remain); is the calibration that of another arm?"
                )
            joints.append(replace(joint, low=least, high=most))
        return Chain(joints, self.tool)


def _matrix(pose: Pose) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = pose.matrix, pose.position
    return T


def _skew(v: np.ndarray) -> np.ndarray:
    x, y, z = v.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cross products of rows; `np.cross` takes ten times as long on few rows."""
    return a[:, (1, 2, 0)] * b[:, (2, 0, 1)] - a[:, (2, 0, 1)] * b[:, (1, 2, 0)]
