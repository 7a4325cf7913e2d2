"""Cameras behind topics of other drivers, from the topic to the stored episode."""

import io
import itertools
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image as Picture
from real_cell import RealCell
from sensor_msgs.msg import CompressedImage, Image
from waiting import eventually

from robot_rl.data.schema import EpisodeBuilder
from robot_rl.data.store.store import EpisodeStore
from robot_rl.errors import CameraError, ConfigError
from ros_nodes.drivers import topic_camera
from ros_nodes.drivers.topic_camera import TopicCamera
from ros_nodes.interface import convert, qos
from ros_nodes.node.robot_node_base import RobotNode

RED = (200, 30, 40)
NEAR_FAR = (0.2, 1.2)


def jpeg(rgb, size=(48, 64)):
    file = io.BytesIO()
    Picture.fromarray(np.broadcast_to(np.array(rgb, np.uint8), (*size, 3))).save(file, "JPEG", quality=95)
    return CompressedImage(format="rgb8; jpeg compressed bgr8", data=file.getvalue())


def depth(metres, encoding, size=(48, 64), **fields):
    """A depth image with four bytes at the end of each row that belong to no pixel."""
    values = np.full(size, metres * (1.0 if encoding == "32FC1" else 1000.0))
    kind = np.dtype({"32FC1": "f4", "16UC1": "u2"}[encoding]).newbyteorder(">" if fields.get("is_bigendian") else "<")
    rows = np.hstack((values.astype(kind).view(np.uint8).reshape(size[0], -1), np.zeros((size[0], 4), np.uint8)))
    return Image(height=size[0], width=size[1], encoding=encoding, step=rows.shape[1], data=rows.tobytes(), **fields)


class Driver(RobotNode):
    """Publishes messages in turn, over and over; pictures that stay the same for long count as frozen."""

    def __init__(self, topic, messages, **options):
        super().__init__("camera_driver", **options)
        self._messages = itertools.cycle(messages)
        self._publisher = self.create_publisher(type(messages[0]), topic, qos.READING)
        self.timer(1 / 30, self._publish)

    def _publish(self):
        message = next(self._messages)
        message.header.stamp = convert.time_message(self.wall.now())
        self._publisher.publish(message)


@pytest.mark.parametrize("encoding", ["16UC1", "32FC1"])
@pytest.mark.parametrize("is_bigendian", [0, 1])
def test_a_depth_image_is_in_metres_whatever_its_encoding(encoding, is_bigendian):
    read = convert.depth_of(depth(0.7, encoding, is_bigendian=is_bigendian))
    assert read.shape == (48, 64)
    assert np.allclose(read, 0.7)


@pytest.mark.parametrize(
    ("topic", "messages", "pixel"),
    [
        ("/driver/color/compressed", [jpeg(RED), jpeg(tuple(value + 1 for value in RED))], RED),
        ("/driver/depth", [depth(0.7, "16UC1"), depth(0.706, "16UC1")], (128, 128, 128)),
    ],
)
def test_frames_of_a_topic_are_observed_and_stored_with_the_episode(graph, tmp_path, topic, messages, pixel):
    graph.add(lambda **options: Driver(topic, messages, **options))
    cell = RealCell(graph, f"topic:{topic}")
    cell.reset(graph, lambda: cell.person.call("ready"))
    with EpisodeStore.create(tmp_path / "store") as store:
        builder, name = None, ""
        for _ in range(3):
            observation, *_, info = cell.env.step(np.zeros(4, np.float32))
            step = info["step"].recorded
            name, builder = step.episode_id, builder or EpisodeBuilder(step.episode_id)
            builder.add(replace(step, index=len(builder)))
        builder.cut()
        store.append(builder.finish(observation, step.stamp_obs + 1))
    with EpisodeStore.open(tmp_path / "store") as store:
        images = store.read(name).observations["images/wrist"]
    assert images.shape == (4, 64, 64, 3)
    assert np.abs(images.astype(int) - pixel).max() <= 3  # JPEG, and the two that take turns


def test_what_is_wrong_with_a_topic_is_named(graph, monkeypatch):
    monkeypatch.setattr(topic_camera, "SILENT", 0.5)
    reader = graph.add(lambda **options: RobotNode("camera_node", **options))
    nobody = TopicCamera(reader, "/driver/color", NEAR_FAR)
    with pytest.raises(CameraError, match="nobody publishes /driver/color; start the camera's driver"):
        nobody.read()
    broken = TopicCamera(reader, "/driver/b/compressed", NEAR_FAR)
    publisher = reader.create_publisher(CompressedImage, "/driver/b/compressed", qos.READING)
    assert eventually(publisher.get_subscription_count)
    publisher.publish(CompressedImage(format="jpeg", data=b"no picture"))
    with pytest.raises(CameraError, match=r"/driver/b/compressed: a compressed image \(jpeg\) is no JPEG or PNG"):
        broken.read()
    with pytest.raises(ConfigError, match="take the raw topic of a depth image"):
        TopicCamera(reader, "/driver/depth/compressedDepth", NEAR_FAR)
