"""The typed messages and the actions of `robot_rl_msgs`, where it is built."""

from functools import partial

import pytest
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from real_cell import EXAMPLE
from ros_nodes_graph import Cell
from std_srvs.srv import Trigger
from waiting import PATIENCE, eventually

from ros_nodes.interface import qos, topics
from ros_nodes.interface.task_messages import EpisodeStarted, from_text
from ros_nodes.node import task_publisher, trigger_action
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.task_node import TaskNode

needs_messages = pytest.mark.skipif(
    task_publisher.typed is None, reason="robot_rl_msgs is not built: colcon build --base-paths robot_rl_msgs"
)


@needs_messages
def test_the_typed_messages_of_a_task_say_what_the_json_says(graph):
    typed, found, texts = task_publisher.typed, {}, []
    reader = graph.add(lambda **options: RobotNode("reader", **options))
    for kind, name, profile in (
        (typed.TaskFacts, "facts", qos.LATCHED),
        (typed.Estimates, "estimates", qos.EVENT),
        (typed.Verdict, "verdict", qos.EVENT),
    ):
        reader.create_subscription(kind, f"task/typed/{name}", partial(found.__setitem__, name), profile)
    reader.subscribe(topics.VERDICT, texts.append)
    cell = Cell(graph, "reach")
    task, clock = cell.workcell.task, cell.workcell.clock
    task.reset(0)
    clock.sleep_until(clock.now() + 100_000_000)
    assert eventually(lambda: len(found) == 3 and texts), found.keys()
    facts, verdict = found["facts"], found["verdict"]
    assert (facts.name, facts.control_period, facts.max_steps) == (
        "reach",
        task.spec.control_period,
        task.spec.max_steps,
    )
    assert (facts.operated_by, facts.lockstep) == ("script", True)
    said = from_text(task_publisher.OutcomeMessage, texts[-1].data)
    assert (verdict.episode, verdict.success, verdict.reward) == (said.episode, said.success, said.reward)
    assert dict(zip(verdict.metric_names, verdict.metric_values, strict=True)) == said.metrics
    sizes = {key: spec.shape[0] for key, spec in task.observation_specs().items()}
    assert len(found["estimates"].values) == sum(sizes.values())
    assert {name.rpartition("/")[0] for name in found["estimates"].names} == set(sizes)


@needs_messages
def test_a_reset_as_an_action_tells_what_is_waited_for_can_be_cancelled_and_ends_with_the_persons_consent(graph):
    node = graph.add(TaskNode, task="plug", file=str(EXAMPLE))
    asking, told = graph.add(lambda **options: RobotNode("asking", **options)), []
    client = ActionClient(asking, trigger_action.Trigger, topics.RESET[0])
    assert client.wait_for_server(PATIENCE)

    def start():
        told.clear()
        sent = client.send_goal_async(trigger_action.Trigger.Goal(), feedback_callback=told.append)
        assert eventually(sent.done)
        assert eventually(lambda: told and node.facts()["waits_for_person"])
        return sent.result()

    goal = start()
    assert "make the scene ready" in told[0].feedback.doing
    goal.cancel_goal_async()
    ended = goal.get_result_async()
    assert eventually(ended.done)
    assert ended.result().status == GoalStatus.STATUS_CANCELED
    assert not ended.result().result.success

    ended = start().get_result_async()
    asking.create_client(Trigger, topics.READY_SERVICE[0]).call_async(Trigger.Request())
    assert eventually(ended.done)
    assert ended.result().status == GoalStatus.STATUS_SUCCEEDED
    assert from_text(EpisodeStarted, ended.result().result.message).episode == 1
