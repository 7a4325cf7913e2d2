"""The table in docs/ros2.md is that of the code, and that of a graph that runs."""

from pathlib import Path

from rclpy.qos import QoSProfile, ReliabilityPolicy
from ros_nodes_graph import Cell
from std_msgs.msg import String

from robot_rl.cell.task_file import load_task
from robot_rl.env.task import WorkcellOptions
from robot_rl.env.task_arms import TaskArms
from robot_rl.hil.remote_operator import RemoteOperator
from ros_nodes.bridge.link_topics import ActorOverTopics, LearnerOverTopics
from ros_nodes.bridge.ros_operator import RosOperator
from ros_nodes.bringup.check import topic_problems, type_name
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.node.task_publisher import TYPED
from ros_nodes.nodes.teleop_node import TeleopNode

DOCUMENT = Path(__file__).parents[2] / "docs" / "ros2.md"


def rows():
    for topic in topics.TOPICS:
        reliable = "reliable" + (", latched" if "TRANSIENT" in topic.qos.durability.name else "")
        quality = f"{reliable}, {topic.qos.depth}"
        cells = (f"`{topic.name}`", type_name(topic), topic.rate, topic.frame, quality, topic.about)
        yield f"| {' | '.join(cells)} |"


def test_the_document_has_the_table_of_the_code():
    head = ["| topic | type | rate | frame | QoS, depth | what |", "|---|---|---|---|---|---|"]
    assert "\n".join([*head, *rows()]) in DOCUMENT.read_text(), "\n".join([*head, *rows()])


def test_the_task_of_two_arms_in_the_document_is_one(tmp_path):
    text = DOCUMENT.read_text().partition("### The task of two arms")[2]
    (tmp_path / "lift.yaml").write_text(text.partition("```yaml\n")[2].partition("```")[0])
    spec = load_task(tmp_path / "lift.yaml", "lift")
    assert list(spec.arms) == ["left", "right"]
    assert (spec.action_size, spec.action_axes, spec.keep_out.distance) == (6, ("x", "y", "z"), 0.02)
    TaskArms(spec)


def test_a_running_graph_has_the_topics_types_and_qualities_of_the_table(graph):
    cell = Cell(graph, "reach", options=WorkcellOptions(cameras=("wrist",), image_size=(64, 64)))
    learner = graph.add(lambda **options: RobotNode("learner_node", **options))
    graph.add(TeleopNode, device="twist")  # beside the one of the cell, whose device is joy
    RosOperator(cell.actor, RemoteOperator())
    served, link = ActorOverTopics(learner), LearnerOverTopics(cell.actor)
    link.open(lambda _: None, lambda _: None, lambda: None)
    try:
        cell.workcell.task.reset(0)
        assert topic_problems(cell.actor) == []
        there = dict(cell.actor.get_topic_names_and_types())
        names = [(topic, name) for topic in topics.TOPICS for name in names_of(cell.actor, topic)]
        for topic, name in names:
            assert there.get(name) == [type_name(topic)], name
            for info in cell.actor.get_publishers_info_by_topic(name):
                assert info.qos_profile.reliability == topic.qos.reliability, name
                assert info.qos_profile.durability == topic.qos.durability, name
        of_ros = {"/rosout", "/parameter_events", "/safety_node/transition_event", "/tf", "/tf_static"}
        known = {name for _, name in names} | of_ros
        typed = {f"/{TYPED}{name}" for name in ("facts", "estimates", "verdict")}  # where robot_rl_msgs is built
        assert topics_of_namespace(cell.actor, "/") <= known | typed  # others may be of tests before this one
    finally:
        link.close(None)
        served.close()


def names_of(node, topic):
    """Full names of a topic: one for each node, where the name has a place for it."""
    nodes = node.get_node_names() if "{node}" in topic.name else [""]
    return {node.resolve_topic_name(topic.name.format(camera="wrist", node=name)) for name in nodes}


def topics_of_namespace(node, namespace):
    """All topics that nodes of a namespace publish or read."""
    names = [name for name, where in node.get_node_names_and_namespaces() if where == namespace]
    published = [node.get_publisher_names_and_types_by_node(name, namespace) for name in names]
    read = [node.get_subscriber_names_and_types_by_node(name, namespace) for name in names]
    return {topic for rows in (*published, *read) for topic, _ in rows}


def test_a_reader_that_cannot_read_and_a_wrong_type_are_named(graph):
    node = graph.add(lambda **options: RobotNode("watcher", **options))
    unreliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    node.create_publisher(topics.POSE.type, topics.POSE.name, unreliable)
    node.create_subscription(topics.POSE.type, topics.POSE.name, lambda _: None, QoSProfile(depth=1))
    node.create_publisher(String, topics.WRENCH.name, 1)
    problems = topic_problems(node)
    assert any("/current_pose: watcher cannot read what watcher sends" in problem for problem in problems)
    assert any(
        "/wrench has type std_msgs/msg/String, it should be geometry_msgs/msg/WrenchStamped" in p for p in problems
    )
