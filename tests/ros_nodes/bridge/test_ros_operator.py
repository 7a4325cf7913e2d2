"""Calls and questions of a job to a person behind topics."""

from waiting import eventually

from robot_rl.hil.remote_operator import RemoteOperator
from ros_nodes.bridge.ros_operator import RosOperator
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode


def test_a_job_that_is_started_again_takes_back_the_call_and_the_question_of_the_one_that_was_killed(graph):
    watching = graph.add(lambda **options: RobotNode("watching", **options))
    calls, questions = [], []
    watching.subscribe(topics.CALL, lambda message: calls.append(message.data))
    watching.subscribe(topics.QUESTION, lambda message: questions.append(message.data))
    killed, person = graph.add(lambda **options: RobotNode("actor_node", **options)), RemoteOperator()
    RosOperator(killed, person)
    person.call("doubt: the policy may fail")
    assert eventually(lambda: calls[-1:] == ["doubt: the policy may fail"])
    graph.remove(killed)
    RosOperator(graph.add(lambda **options: RobotNode("actor_node", **options)), RemoteOperator())
    assert eventually(lambda: calls[-1:] == questions[-1:] == [""], 20.0), (calls, questions)
