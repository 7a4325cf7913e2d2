"""Without ROS these tests are skipped, and say so.

They keep to the wall clock, as robots do: a machine that stands still for a second is a fault that nodes must notice.
"""

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2: source an installation, or pip install 'robot_rl[ros]'")

from bringup_process import Bringup
from ros_nodes_graph import Graph

WITHOUT_GRAPH = ("interface", "bringup", "node")
"""Folders whose tests start no nodes; all others are slow."""


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.wall_clock)
            if item.path.parent.name not in WITHOUT_GRAPH:
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def graph():
    """Nodes in this process, in a ROS domain of their own."""
    made = Graph()
    yield made
    made.close()


@pytest.fixture
def bringup(tmp_path):
    made = []

    def make(what, *flags, name="run", **settings):
        made.append(Bringup(what, tmp_path / name, *flags, **settings))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
