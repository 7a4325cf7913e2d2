"""Transforms for TF (`/tf`, `/tf_static`), where the package `tf2_msgs` is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from geometry_msgs.msg import TransformStamped

from robot_rl.env.camera_mount import CameraMount
from robot_rl.geometry import Pose
from ros_nodes.interface import convert, qos, topics
from ros_nodes.interface.frames import BASE, TCP

try:
    from tf2_msgs.msg import TFMessage
except ImportError:  # a package of its own, which has no wheel
    TFMessage = None

if TYPE_CHECKING:
    from ros_nodes.node.robot_node_base import RobotNode

MOVING, FIXED = "/tf", "/tf_static"
WITHOUT = (
    "tf2_msgs is not installed: no transforms are published and none are read; install ros-$ROS_DISTRO-tf2-msgs to see "
    "the arm and its cameras in RViz"
)


class Transforms:
    """What a node publishes of the frames of an arm.

    Without `tf2_msgs` it publishes nothing, and the node says so once.

    Args:
        node: Whose publishers, and whose names of the frames.
    """

    def __init__(self, node: RobotNode) -> None:
        self._node = node
        self._cameras: dict[str, TransformStamped] = {}
        self.available = TFMessage is not None
        """Whether transforms are published."""
        if TFMessage is None:
            node.get_logger().info(WITHOUT)
            return
        self._moving = node.create_publisher(TFMessage, MOVING, qos.EVENT)
        self._fixed = node.create_publisher(TFMessage, FIXED, qos.LATCHED)

    def tcp(self, stamp: int, T_base_tcp: Pose) -> None:
        """Publish where the tool is, measured at a time [ns]."""
        if self.available:
            self._moving.publish(TFMessage(transforms=[self._transform(stamp, BASE, TCP, T_base_tcp)]))

    def cameras(self, mounts: Mapping[str, CameraMount]) -> None:
        """Publish where cameras are, by their names, together with those before."""
        if not self.available or not mounts:
            return
        for name, mount in mounts.items():
            frame = topics.IMAGE.frame.format(camera=name)
            self._cameras[name] = self._transform(self._node.wall.now(), mount.parent, frame, mount.pose)
        self._fixed.publish(TFMessage(transforms=list(self._cameras.values())))

    def _transform(self, stamp: int, parent: str, child: str, pose: Pose) -> TransformStamped:
        named = self._node.frames.named
        return convert.transform_message(stamp, named(parent), named(child), pose)


def read_fixed(node: RobotNode, take: Callable[[str, str, Pose], None]) -> bool:
    """Call `take` with parent, child and pose of each fixed transform of TF; return False without `tf2_msgs`."""
    if TFMessage is None:
        return False

    def receive(message: Any) -> None:
        for one in message.transforms:
            take(one.header.frame_id, one.child_frame_id, convert.transform_of(one))

    topic = topics.Topic(FIXED, TFMessage, qos.FIXED_TRANSFORMS, "", "", "")
    node.subscribe(topic, receive)
    return True
