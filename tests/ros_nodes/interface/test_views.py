"""Every topic, type and frame that the views in launch/config name is one of the graph."""

import json
import re

import yaml

from ros_nodes.bringup.check import type_name
from ros_nodes.bringup.table import table_folder
from ros_nodes.interface import convert
from ros_nodes.interface.topics import TOPICS

CAMERAS = ("wrist", "front")
TYPES = {
    f"/{topic.name.lstrip('/').format(camera=camera, node='sim_node')}": type_name(topic)
    for topic in TOPICS
    for camera in CAMERAS
}
FRAMES = {"base", "tcp", *(f"{camera}_optical_frame" for camera in CAMERAS)}
SHOWN = {
    "Pose": "geometry_msgs/msg/PoseStamped",
    "Wrench": "geometry_msgs/msg/WrenchStamped",
    "Image": "sensor_msgs/msg/Image",
    "Polygon": "geometry_msgs/msg/PolygonStamped",
    "RobotModel": "std_msgs/msg/String",
}


def walk(tree):
    """All keys and values of nested mappings and lists."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key, value
            yield from walk(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from walk(item)


def test_rviz_shows_topics_of_the_graph_by_their_types():
    tree = yaml.safe_load((table_folder() / "robot_rl.rviz").read_text())["Visualization Manager"]
    shown = 0
    for display in tree["Displays"]:
        topic = display.get("Topic") or display.get("Description Topic")
        if topic is not None:
            assert TYPES[topic["Value"]] == SHOWN[display["Class"].rpartition("/")[2]], display["Name"]
            shown += 1
    assert shown >= 7
    assert {value for key, value in walk(tree) if key in ("Fixed Frame", "Reference Frame")} <= FRAMES


def test_foxglove_shows_topics_and_fields_of_the_graph():
    tree = json.loads((table_folder() / "foxglove.json").read_text())
    panels = tree["configById"]
    assert {value for _, value in walk(tree["layout"]) if isinstance(value, str) and "!" in value} == set(panels)
    named = [value for key, value in walk(panels) if key in ("imageTopic", "calibrationTopic", "topicToRender")]
    named += [key for panel in panels.values() for key in panel.get("topics", {})]
    paths = [value for key, value in walk(panels) if key in ("topicPath", "value")]
    kinds = {topic.name: topic.type for topic in TOPICS}
    for path in paths:
        topic, *fields = path.split(".")
        named.append(topic)
        value = kinds[topic.lstrip("/")]()
        for field in fields:
            value = getattr(value, re.sub(r"\[.*", "", field))
    assert set(named) <= set(TYPES)
    assert len(named) > 15
    frames = {value for key, value in walk(panels) if key in ("followTf", "frameId")}
    assert frames <= FRAMES


def test_a_box_is_a_closed_line_along_each_of_its_edges():
    points = [(p.x, p.y, p.z) for p in convert.box_message(0, (0.0, 0.0, 0.0), (1.0, 2.0, 3.0)).polygon.points]
    along = [frozenset(pair) for pair in zip(points, [*points[1:], points[0]], strict=True)]
    assert len(set(along)) == 12, "a box has 12 edges"
    for edge in along:
        one, other = sorted(edge)
        assert sum(a != b for a, b in zip(one, other, strict=True)) == 1
