"""Managed nodes in processes of their own, as `ros2 run` and `robot-rl up` start them."""

import subprocess
import sys

import pytest
from bringup_process import Bringup
from ros_nodes_graph import DOMAIN, Graph, ManagedClient
from running import environment
from waiting import eventually

from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode

WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "lifecycle_msgs":
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from ros_nodes.nodes.safety_node import main
sys.exit(main())
"""


@pytest.fixture
def observer():
    graph = Graph()
    node = graph.add(lambda **options: RobotNode("observer", **options))
    node.stopped = []
    node.subscribe(topics.STOPPED, lambda message: node.stopped.append(message.data))
    yield node
    graph.close()


def without_lifecycle_msgs(*arguments):
    command = [sys.executable, "-c", WITHOUT, "--ros-args", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(ROS_DOMAIN_ID=str(DOMAIN)))


def test_without_lifecycle_msgs_a_node_starts_active_and_reports_that():
    node = without_lifecycle_msgs()
    for line in node.stderr:
        if "always active: the package lifecycle_msgs is missing" in line:
            break
    else:
        pytest.fail("not said")
    node.terminate()
    node.communicate(timeout=60)


def test_without_lifecycle_msgs_a_node_refuses_to_start_inactive():
    node = without_lifecycle_msgs("-p", "start_inactive:=true")
    _, printed = node.communicate(timeout=60)
    assert node.returncode == 2
    assert "start_inactive: nobody could activate this node" in printed
    assert "Traceback" not in printed


def test_up_starts_the_safety_node_inactive_and_a_standard_tool_activates_it(tmp_path, observer):
    up = Bringup("sim", tmp_path / "run", "--start_inactive", "--only", "sim", "safety", "teleop")
    try:
        assert eventually(lambda: observer.stopped and "safety_node is inactive" in observer.stopped[-1], 60.0)
        managed = ManagedClient(observer, "/safety_node")
        assert managed.transitions().keys() == {"cleanup", "activate", "shutdown"}
        assert managed.set("activate")
        assert eventually(lambda: "inactive" not in observer.stopped[-1])
    finally:
        up.process.terminate()
        up.process.wait(60)
