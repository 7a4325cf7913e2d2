"""A camera behind a ROS topic of another driver, as a source of frames: raw, JPEG or PNG, or depth."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import Any

from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage, Image

from robot_rl.camera.depth import depth_picture
from robot_rl.camera.open_source import opener
from robot_rl.camera.source import CaptureFormat, Frame, FrameSource
from robot_rl.errors import CameraError, ConfigError, SpecError
from ros_nodes.interface import convert, qos
from ros_nodes.interface.topics import Topic
from ros_nodes.node.robot_node_base import RobotNode

KIND = "topic:"
"""Beginning of the name of such a source; the topic follows."""
SILENT = 3.0
"""Time without a frame after which the topic is looked for anew [s]."""
COMPRESSED, COMPRESSED_DEPTH = "/compressed", "/compressedDepth"
"""Ends of the names that image_transport gives to topics of another type."""


def camera_opener(
    node: RobotNode, source: str, wanted: CaptureFormat, depth_range: tuple[float, float]
) -> Callable[[], FrameSource]:
    """Return what opens a camera of this machine, or one behind a topic.

    Args:
        node: Whose subscription.
        source: `topic:TOPIC`, or what `robot_rl.camera.source` explains.
        wanted: Format of a camera of this machine; a topic has its own.
        depth_range: Nearest and farthest distance of depth images [m].

    Raises:
        ConfigError: if the text names no source.
        PluginError: if a package that it needs is not installed.
    """
    if not source.startswith(KIND):
        return opener(source, wanted)
    camera = TopicCamera(node, source.removeprefix(KIND), depth_range)
    return lambda: camera


class TopicCamera:
    """Frames of a topic.

    A topic that ends in `/compressed` has the type CompressedImage, any other Image. Depth images (16UC1 in mm, 32FC1
    in m) become grey pictures.

    Args:
        node: Whose subscription; somebody else spins it.
        topic: Its name.
        depth_range: Nearest and farthest distance of depth images [m].

    Raises:
        ConfigError: if no topic is named, or one of a type that is not read.
    """

    serial = ""

    def __init__(self, node: RobotNode, topic: str, depth_range: tuple[float, float]) -> None:
        if not topic or topic.endswith(COMPRESSED_DEPTH):
            raise ConfigError(
                f"no camera is called {KIND + topic!r}; valid: {KIND}TOPIC, of type Image, or of type CompressedImage "
                "with a name that ends in /compressed; take the raw topic of a depth image"
            )
        self._node, self._depth_range = node, depth_range
        self._arrived: queue.Queue[Any] = queue.Queue(maxsize=1)
        self._compressed = topic.endswith(COMPRESSED)
        kind = CompressedImage if self._compressed else Image
        self._topic = node.resolve_topic_name(topic)
        node.subscribe(Topic(self._topic, kind, QoSProfile(depth=1), "", "", ""), self._take, qos.NEWEST_FRAME)

    def read(self) -> Frame:
        """Return the next frame.

        Raises:
            CameraError: if none comes, or it is no picture.
        """
        try:
            message = self._arrived.get(timeout=SILENT)
        except queue.Empty as error:
            raise CameraError(self._silence()) from error
        try:
            image = self._image(message)
        except SpecError as error:
            raise CameraError(f"{self._topic}: {error}") from error
        return Frame(convert.stamp_of(message.header.stamp) or self._node.wall.now(), image)

    def close(self) -> None:
        """Forget what has come; the subscription ends with the node."""
        while not self._arrived.empty():
            self._arrived.get_nowait()

    def _image(self, message: Any) -> Any:
        if self._compressed:
            return convert.compressed_image_of(message)
        if message.encoding in convert.DEPTH_UNITS:
            return depth_picture(convert.depth_of(message), *self._depth_range)
        return convert.image_of(message)

    def _take(self, message: Any) -> None:
        self.close()  # only the newest counts
        self._arrived.put_nowait(message)

    def _silence(self) -> str:
        """Return why no frame comes, as far as the graph shows it."""
        wanted = f"sensor_msgs/msg/{'CompressedImage' if self._compressed else 'Image'}"
        kinds = {info.topic_type for info in self._node.get_publishers_info_by_topic(self._topic)}
        if not kinds:
            return f"nobody publishes {self._topic}; start the camera's driver, in this ROS domain"
        if wrong := kinds - {wanted}:
            return f"{self._topic} has the type {', '.join(wrong)}, needed is {wanted}"
        return f"nothing has come on {self._topic} for {SILENT:g} s, although it is published"
