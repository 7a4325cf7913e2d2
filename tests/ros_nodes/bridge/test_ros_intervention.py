"""Interventions on their way to the actor: what counts of them, and for how long."""

import time

import numpy as np
import pytest
from fakes import SPEC
from waiting import eventually

from robot_rl.clock import NS_PER_S
from robot_rl.teleop.intervention import Intervention
from ros_nodes.bridge.ros_intervention import RosIntervention
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import TaskHead
from ros_nodes.node.robot_node_base import RobotNode

TIMEOUT = 0.3
ACTION = np.array([1.0, 0.5, -1.0], np.float32)


@pytest.fixture
def led(graph):
    """Sends interventions with stamps so much after now [s]; returns the node that receives them, and its operator."""
    actor = graph.add(lambda **options: RobotNode("actor", **options))
    device = graph.add(lambda **options: RobotNode("device", **options))
    sent = device.publisher(topics.INTERVENTION)
    head = TaskHead(SPEC, {}, "human", False, (64, 64), (), None)
    operator = RosIntervention(actor, Arrivals()).make_operator(head, actor.wall, TIMEOUT)
    assert eventually(sent.get_subscription_count)

    def send(ahead):
        stamp = device.wall.now() + round(ahead * NS_PER_S)
        sent.publish(convert.intervention_message(Intervention.of_action(stamp, ACTION, SPEC)))

    return send, actor, operator


def test_an_intervention_leads_until_it_is_too_old(led):
    send, _, operator = led
    send(0.0)
    assert eventually(lambda: operator.act(None, None) is not None)
    assert operator.act(None, None).tolist() == ACTION.tolist()
    time.sleep(TIMEOUT)
    assert operator.act(None, None) is None


def test_one_of_the_future_does_not_lead_and_it_is_said(led):
    """Else a device whose machine has another time would lead for that much longer than it lives."""
    send, actor, operator = led
    send(5.0)
    assert eventually(lambda: any("the intervention's stamp lies in the future" in text for text in actor.problems))
    assert operator.act(None, None) is None
    send(0.0)
    assert eventually(lambda: operator.act(None, None) is not None)
