"""The frames in the headers of an arm's controller: in whose axes a twist or a wrench is, and its way to the tcp."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_rl.arm.frame_tree import FrameTree
from robot_rl.arm.kinematics.chain import quat_from_rpy
from robot_rl.errors import ConfigError, SpecError
from robot_rl.geometry import Pose, quat_conjugate, quat_rotate
from ros_nodes.interface.frames import BASE, TCP
from ros_nodes.node.robot_node_base import RobotNode


class ControllerFrames:
    """What is known of the frames of a controller and its sensors.

    Args:
        node: Reads `/tf_static`, where `tool` is named and TF is available.
        base: Name of the arm's base; empty: the frame of the first pose.
        tool: Name of the tcp; empty where no header names it.
        sensor: Name of the force sensor's own frame; empty: its pose is that of TF.
        sensor_pose: Of that frame in the tcp's, x y z [m] roll pitch yaw [rad], shape (6,).

    Raises:
        ConfigError: if the pose does not have six numbers.
    """

    def __init__(self, node: RobotNode, base: str, tool: str, sensor: str, sensor_pose: Sequence[float]) -> None:
        if len(sensor_pose) != 6:
            raise ConfigError(f"sensor_pose needs six numbers, x y z [m] roll pitch yaw [rad]; got {len(sensor_pose)}")
        self.base = base
        """Name of the arm's base; empty before the first pose where no parameter gives it."""
        self._tool, self._sensor = tool, sensor
        self._mount = Pose(np.array(sensor_pose[:3]), quat_from_rpy(*sensor_pose[3:])) if sensor else None
        self._fixed = FrameTree()
        self._with_tf = bool(tool) and node.read_fixed_transforms(self._fixed.add)
        self._pose: Pose | None = None

    def take_pose(self, frame: str, T_base_tcp: Pose) -> None:
        """Take note of a pose of the tcp.

        Raises:
            SpecError: if it is in another frame than the arm's base.
        """
        self.base = self.base or frame
        if frame != self.base:
            raise SpecError(
                f"a pose is in the frame {frame!r}, the arm's base is {self.base!r}; if it has another "
                "name, set pose_frame"
            )
        self._pose = T_base_tcp

    def twist_in_base(self, frame: str, twist: np.ndarray, stated: str) -> np.ndarray:
        """Return a twist of the tcp in the axes of the base, shape (6,).

        Args:
            frame: In whose axes it is, by its header.
            twist: (linear, angular), shape (6,).
            stated: `base` or `tcp` for a header without a frame, or an empty text.

        Raises:
            SpecError: if its frame is not known, or contradicts what is stated.
        """
        axes = self._axes(frame, "twist", stated)
        if axes not in (BASE, TCP):
            raise SpecError(self._unknown(axes, "twist"))
        return twist if axes == BASE else _turned(self._known_pose("twist").quaternion, twist)

    def wrench_at_tcp(self, frame: str, wrench: np.ndarray, stated: str) -> np.ndarray:
        """Return a wrench at the tcp, in its axes, shape (6,).

        Args:
            frame: By its header: the sensor's, where the torque is about the sensor; the tcp's or the base's, where it
                is about the tcp.
            wrench: (force, torque), shape (6,).
            stated: `base` or `tcp` for a header without a frame, or an empty text.

        Raises:
            SpecError: if its frame is not known, or contradicts what is stated.
        """
        axes = self._axes(frame, "wrench", stated)
        if axes == BASE:
            return _turned(quat_conjugate(self._known_pose("wrench").quaternion), wrench)
        if axes == TCP:
            return wrench
        mount = self._mount if self._sensor == axes else None
        if not self._sensor:
            mount = self._fixed.pose(self._tool, axes)
        if mount is None:
            raise SpecError(self._unknown(axes, "wrench"))
        return mount.carry_wrench(wrench)

    def _axes(self, frame: str, what: str, stated: str) -> str:
        """Return in whose axes a twist or a wrench is: `base`, `tcp`, or the name of another frame."""
        if not frame:
            if not stated:
                raise SpecError(f"a {what} names no frame in its header; set {what}_frame to tcp or base")
            return stated
        axes = {self._tool: TCP, self.base: BASE}.get(frame, frame)
        if stated and axes in (BASE, TCP) and axes != stated:
            raise SpecError(
                f"a {what} is in the frame {frame!r}, the {axes}'s, but {what}_frame is {stated}; correct the header, "
                f"or leave {what}_frame out"
            )
        return axes

    def _known_pose(self, what: str) -> Pose:
        if self._pose is None:
            raise SpecError(f"a {what} has to be turned by the pose of the tcp, but no pose has come yet")
        return self._pose

    def _unknown(self, frame: str, what: str) -> str:
        """Return why a frame is refused, and the cure."""
        text = f"a {what} is in the frame {frame!r}, neither the base's ({self.base!r}) nor the tcp's"
        text += f" ({self._tool!r})" if self._tool else f"; if it is the tcp's, set tool_frame to {frame}"
        if what == "twist":
            return text
        if self._sensor:
            return f"{text} nor the sensor's ({self._sensor!r})"
        text += "; if it is the sensor's, set sensor_frame and sensor_pose"
        return text + (", since no fixed transforms of TF lead from the tcp to it" if self._with_tf else "")


def _turned(quaternion: np.ndarray, six: np.ndarray) -> np.ndarray:
    return np.concatenate((quat_rotate(quaternion, six[:3]), quat_rotate(quaternion, six[3:])))
