"""Requests to services survive the end of a server, and its pause."""

import threading

import pytest
from std_srvs.srv import Trigger
from waiting import eventually

from robot_rl.errors import GraphError
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.node.robot_node_base import RobotNode


class Server(RobotNode):
    """Answers with its name, or hangs."""

    def __init__(self, answers, **options):
        super().__init__(f"server_{answers}".lower(), **options)
        self.requested, self._answers, self.ended = 0, answers, threading.Event()
        self.create_service(Trigger, "task/reset", self._on_request)

    def _on_request(self, request, response):
        self.requested += 1
        if not self._answers:
            self.ended.wait(5.0)
        response.success, response.message = True, self.get_name()
        return response


def test_a_request_whose_server_ends_is_repeated_to_the_next_one(graph):
    client_node = graph.add(lambda **options: RobotNode("client", **options))
    client = client_node.create_client(Trigger, "task/reset")
    first = graph.add(lambda **options: Server(False, **options))
    answers = []
    helper = graph.thread(lambda: answers.append(Arrivals().call(client_node, client, Trigger.Request(), 20.0)))
    assert eventually(lambda: first.requested == 1)
    graph.add(lambda **options: Server(True, **options))
    helper.join(10.0)
    assert [answer.message for answer in answers] == ["server_true"]
    first.ended.set()


def test_a_service_that_does_not_answer_or_is_not_there_is_named(graph):
    client_node = graph.add(lambda **options: RobotNode("client", **options))
    client = client_node.create_client(Trigger, "task/reset")
    with pytest.raises(GraphError, match=r"no node offers the service .*task/reset; is the node"):
        Arrivals().call(client_node, client, Trigger.Request(), 0.3)
    server = graph.add(lambda **options: Server(False, **options))
    with pytest.raises(GraphError, match=r"task/reset has not answered within 2 s"):
        Arrivals().call(client_node, client, Trigger.Request(), 2.0)
    assert eventually(lambda: server.requested > 0)
    server.ended.set()
