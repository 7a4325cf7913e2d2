"""Transforms for TF (`/tf`, `/tf_static`), where the package `tf2_msgs` is installed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node

from robot_rl.clock import Clock
from robot_rl.env.cell_geometry.camera_mount import CameraMount
from robot_rl.geometry import Pose
from ros_nodes.interface import convert, qos, topics
from ros_nodes.interface.frames import BASE, CELL, TCP, FrameNames, of_arm

try:
    from tf2_msgs import msg as tf2
except ImportError:  # a package of its own, which has no wheel
    tf2 = None

TFMessage: Any = None if tf2 is None else tf2.TFMessage
"""Type of the messages of TF; None without `tf2_msgs`."""

MOVING, FIXED = "/tf", "/tf_static"
WITHOUT = (
    "tf2_msgs is not installed: no transforms are published and none are read; install ros-$ROS_DISTRO-tf2-msgs to see "
    "the arm and its cameras in RViz"
)


class Transforms:
    """What a node publishes of the frames of an arm.

    Without `tf2_msgs` it publishes nothing, and the node says so once.

    Args:
        node: Whose publishers.
        frames: Names of the frames.
        wall: Time of fixed transforms.
    """

    def __init__(self, node: Node, frames: FrameNames, wall: Clock) -> None:
        self._frames, self._wall = frames, wall
        self._fixed_frames: dict[str, TransformStamped] = {}
        self.available = TFMessage is not None
        """Whether transforms are published."""
        if TFMessage is None:
            node.get_logger().info(WITHOUT)
            return
        self._moving = node.create_publisher(TFMessage, MOVING, qos.EVENT)
        self._fixed = node.create_publisher(TFMessage, FIXED, qos.LATCHED)

    def tcp(self, stamp: int, T_base_tcp: Pose, arm: str = "") -> None:
        """Publish where the tool is, of an arm without a name or of one of several, measured at a time [ns]."""
        if self.available:
            parent, child = of_arm(BASE, arm), of_arm(TCP, arm)
            self._moving.publish(TFMessage(transforms=[self._transform(stamp, parent, child, T_base_tcp)]))

    def bases(self, places: Mapping[str, Pose]) -> None:
        """Publish where the bases of several arms stand in the cell, by their names."""
        self._fix({of_arm(BASE, arm): (CELL, pose) for arm, pose in places.items()})

    def cameras(self, mounts: Mapping[str, CameraMount]) -> None:
        """Publish where cameras are, by their names, together with those before."""
        frame = topics.IMAGE.frame
        self._fix({frame.format(camera=name): (mount.parent, mount.pose) for name, mount in mounts.items()})

    def _fix(self, placed: Mapping[str, tuple[str, Pose]]) -> None:
        """Publish fixed frames by their names, each with its parent, together with those before."""
        if not self.available or not placed:
            return
        for child, (parent, pose) in placed.items():
            self._fixed_frames[child] = self._transform(self._wall.now(), parent, child, pose)
        self._fixed.publish(TFMessage(transforms=list(self._fixed_frames.values())))

    def _transform(self, stamp: int, parent: str, child: str, pose: Pose) -> TransformStamped:
        named = self._frames.named
        return convert.transform_message(stamp, named(parent), named(child), pose)
