"""The contract of arm drivers over crisp, with the controller that stands in for an arm; and drivers in robot_node."""

import pytest
from arm_driver_contract import ArmDriverContract, ArmUnderTest
from cartesian_controller import Controller
from page_arm import ADDRESS, PageArm
from waiting import eventually

from ros_nodes.drivers.crisp import CartesianTopics, CrispConfig
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.robot_node import ArmNode

NAMESPACE = ["--ros-args", "-r", "__ns:=/cell"]


class HostNode(RobotNode):
    max_age = 1.0

    def __init__(self, **options):
        super().__init__("robot_node", cli_args=NAMESPACE, **options)


class TestCrisp(ArmDriverContract):
    @pytest.fixture
    def arm(self, graph):
        graph.add(Controller)
        node = graph.add(HostNode)
        gripper = {"gripper_topic": "/gripper/commands", "gripper_joint": "finger_joint", "gripper_closed": 0.8}
        config = CrispConfig(**gripper, gripper_opened=0.0, gripper_width=0.085, wrench_topic="/external_wrench")
        return ArmUnderTest(lambda host: CartesianTopics(config, node), gripper_width=0.085)


def test_a_driver_needs_a_node_only_if_it_works_by_topics():
    with pytest.raises(Exception, match="run it in robot_node"):
        CartesianTopics(CrispConfig(), type("Host", (), {"max_age": 1.0})())


def test_robot_node_runs_a_driver_of_another_package_with_its_parameters(graph, tmp_path, monkeypatch):
    peer = PageArm(tmp_path, monkeypatch).peer
    node = graph.add(lambda **options: ArmNode(cli_args=NAMESPACE, **options), driver="my_arm", host=ADDRESS)
    assert eventually(lambda: node.facts().get("received joints", 0) > 5)
    assert "forces are not measured" in node.health()[1]
    assert node.get_parameter("host").value == ADDRESS
    assert not node.has_parameter("target_topic")
    peer.end()


def test_an_unknown_driver_is_refused(graph):
    with pytest.raises(Exception, match=r"unknown driver 'crips'; valid: .*crisp"):
        graph.add(ArmNode, driver="crips")
