"""A fault of the arm itself holds it, is named, and ends by a person's consent only; over real nodes."""

from functools import partial

from ros_nodes_graph import Graph
from waiting import eventually

from robot_rl.env.supervision import ARM, PAUSE
from robot_rl.hil.remote_operator import RemoteOperator
from ros_nodes.bridge.ros_operator import RosOperator
from ros_nodes.bridge.ros_supervision import RosSupervision
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.robot_node import ArmNode
from ros_nodes.nodes.safety_node import SafetyNode


def test_an_arm_with_a_reflex_recovers_when_a_person_consents_and_not_before(graph: Graph, capfd):
    arm = graph.add(ArmNode, driver="standin", faults=["reflex@0.5"])
    graph.add(SafetyNode, required_nodes=["robot_node"])
    remarks = []
    node = graph.add(partial(RobotNode, "console_node"))
    supervision = RosSupervision(node, None, remarks.append)
    actor = graph.add(partial(RobotNode, "actor_node"))
    RosOperator(actor, RemoteOperator())
    assert eventually(lambda: [hold.name for hold in supervision.holds] == [ARM]), supervision.holds
    reason = supervision.holds[0].reason
    assert reason.startswith(f"{topics.ARM_FAULT}a reflex stopped the arm"), reason
    supervision.hold(PAUSE, "paused")
    assert [hold.name for hold in supervision.holds] == [PAUSE, ARM], "the person sees it before consenting"
    supervision.release(PAUSE)
    assert "a reflex" in arm.health()[1], "a release of another hold is no consent"
    recovered = lambda: supervision.release(ARM) or "a reflex" not in arm.health()[1]  # noqa: E731
    assert eventually(recovered), remarks
    assert eventually(lambda: not any(hold.name == ARM for hold in supervision.holds))
    assert remarks == []
    told = capfd.readouterr().err
    assert "waits for a person: the arm would not obey: a reflex stopped the arm" in told
    assert f"or by the service {actor.resolve_service_name(topics.RECOVER_SERVICE[0])}" in told
