"""Frames in headers and in TF: names by parameter, and what comes in another frame is refused."""

from functools import partial

import numpy as np
import pytest
from ros_nodes_graph import Cell
from waiting import eventually

from robot_rl.errors import ConfigError
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.transforms import FIXED, MOVING
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.sim_node import SimNode

NAMES = {"frame_prefix": "left_", "base_frame": "link0"}
READ = (topics.POSE, topics.TWIST, topics.WRENCH, topics.TOOL, topics.INTERVENTION)


class Reader(RobotNode):
    """Keeps the newest message of each topic, whatever its frame."""

    def __init__(self, **options):
        super().__init__("reader", **options)
        self.newest = {}
        for topic in READ:
            self.create_subscription(topic.type, topic.name, partial(self.keep, topic.name), topic.qos)
        image = topics.IMAGE.name.format(camera="wrist")
        self.create_subscription(topics.IMAGE.type, image, partial(self.keep, topics.IMAGE.name), qos.READING)

    def keep(self, name, message):
        self.newest[name] = message


def test_all_nodes_name_the_frames_that_the_parameters_give(graph):
    reader = graph.add(Reader)
    graph.add(SimNode, task="reach", cameras=["wrist"], image_size=64, **NAMES)
    assert eventually(lambda: len(reader.newest) == len(READ) + 1), reader.newest.keys()
    frames = {name: message.header.frame_id for name, message in reader.newest.items()}
    expected = {topic.name: NAMES["frame_prefix"] + {"base": "link0"}.get(topic.frame, topic.frame) for topic in READ}
    assert frames == expected | {topics.IMAGE.name: "left_wrist_optical_frame"}


def test_a_measurement_in_another_frame_stops_the_arm_and_is_named(graph):
    graph.add(SimNode, task="reach", **NAMES)
    safety = graph.add(SafetyNode)
    reason = "current_pose: its frame is 'left_link0', expected 'base'; give all nodes the same base_frame"
    assert eventually(lambda: any(reason in text for text in safety.problems)), safety.problems
    assert eventually(lambda: "the arm's pose is not known" in safety.health()[1])


def test_a_command_in_another_frame_does_not_reach_the_arm(graph):
    cell = Cell(graph, "reach", lockstep=False)
    cell.workcell.task.reset(0)
    rogue = convert.stop_message(cell.actor.wall.now())
    rogue.header.frame_id = "world"
    before = cell.safety.facts()
    cell.actor.create_publisher(topics.COMMAND.type, topics.COMMAND.name, topics.COMMAND.qos).publish(rogue)
    assert eventually(lambda: any("its frame is 'world'" in text for text in cell.safety.problems))
    assert cell.safety.facts()["passed"] == before["passed"]


def test_a_name_that_is_no_text_is_an_error(graph):
    with pytest.raises(ConfigError, match=r"frame_prefix: .*valid: text"):
        graph.add(SafetyNode, frame_prefix=3)


def test_the_arm_and_its_cameras_are_in_tf(graph):
    pytest.importorskip("tf2_msgs", reason="tf2_msgs has no wheel: needs an installation of ROS")
    from tf2_msgs.msg import TFMessage

    found, poses = {}, []
    reader = graph.add(lambda **options: RobotNode("reader", **options))
    take = lambda message: found.update({one.child_frame_id: one for one in message.transforms})  # noqa: E731
    reader.create_subscription(TFMessage, MOVING, take, qos.EVENT)
    reader.subscribe(topics.POSE, poses.append)
    sim = graph.add(SimNode, task="reach", cameras=["wrist", "front"], image_size=64)
    reader.create_subscription(TFMessage, FIXED, take, qos.FIXED_TRANSFORMS)  # comes later
    assert eventually(lambda: set(found) == {"tcp", "wrist_optical_frame", "front_optical_frame"}), found
    parents = {child: one.header.frame_id for child, one in found.items()}
    assert parents == {"tcp": "base", "wrist_optical_frame": "tcp", "front_optical_frame": "base"}
    for name, mount in sim.cell.mounts.items():
        pose = convert.transform_of(found[f"{name}_optical_frame"])
        np.testing.assert_allclose(pose.vector(), mount.pose.vector(), atol=1e-12)
    tcp = found["tcp"]
    same = lambda: [m for m in poses if m.header.stamp == tcp.header.stamp]  # noqa: E731
    assert eventually(same)
    np.testing.assert_allclose(convert.transform_of(tcp).vector(), convert.pose_of(same()[0].pose).vector(), atol=1e-12)
