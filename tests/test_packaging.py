"""What a ROS 2 workspace needs is there and agrees with the rest."""

import os
import re
import tomllib
from pathlib import Path
from xml.etree import ElementTree

from robot_rl import __version__

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ElementTree.parse(ROOT / "package.xml").getroot()


def test_package_xml_says_the_same_as_the_project():
    assert PACKAGE.get("format") == "3"
    assert PACKAGE.findtext("name") == "robot_rl"
    assert PACKAGE.findtext("version") == __version__
    assert PACKAGE.findtext("export/build_type") == "ament_python"
    description = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["description"]
    assert PACKAGE.findtext("description") == description


def test_every_ros_package_that_is_imported_is_a_dependency():
    imported = set()
    for path in (ROOT / "ros_nodes").glob("*.py"):
        imported |= set(re.findall(r"^(?:from|import) (\w+(?:_msgs|_srvs|_interfaces)|rclpy)", path.read_text(), re.M))
    named = {element.text for element in PACKAGE.iter("exec_depend")}
    assert imported <= named


def test_every_node_has_a_program_for_ros2_run():
    nodes = {path.stem for path in (ROOT / "ros_nodes").glob("*_node.py")}
    programs = list((ROOT / "scripts" / "nodes").iterdir())
    assert {path.name for path in programs} == nodes
    for path in programs:
        assert f"from ros_nodes.{path.name} import main" in path.read_text()
        assert os.access(path, os.X_OK)


def test_the_resource_marker_is_there():
    assert (ROOT / "resource" / "robot_rl").is_file()
