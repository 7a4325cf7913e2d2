"""Two robots in one ROS domain, each in a namespace of its own: neither hears the other."""

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from ros_nodes_graph import Cell, namespaced
from std_msgs.msg import Bool
from waiting import eventually

from robot_rl.env.robot_env import RobotEnv
from ros_nodes.bringup.check import topic_problems
from ros_nodes.interface import topics
from ros_nodes.node.operator_ready import FACT
from ros_nodes.nodes.console_node import ConsoleNode


def test_what_one_is_told_and_does_the_other_does_not_hear(graph):
    left, right = (Cell(graph, "reach", namespace=name) for name in ("left", "right"))
    envs = [RobotEnv(cell.workcell) for cell in (left, right)]
    still = np.zeros(3, np.float32)
    (one, _), (other, _) = (env.reset(seed=seed) for env, seed in zip(envs, (1, 2), strict=True))
    assert not np.array_equal(one["state/target"], other["state/target"]), "each has its own scene"
    stands = right.sim.cell.clock.now()
    for _ in range(3):
        envs[0].step(still)
    assert right.sim.cell.clock.now() == stands, "time goes on for one of them only"
    assert topic_problems(left.actor) == topic_problems(right.actor) == []

    left.actor.publisher(topics.ESTOP).publish(Bool(data=True))
    assert eventually(lambda: left.safety.guard.tripped is not None)
    envs[1].step(still)
    assert right.safety.guard.tripped is None


def test_a_console_shows_the_wait_for_a_person_of_its_own_robot_only(graph):
    console = graph.add(namespaced("left")(ConsoleNode))

    def waits_after(node):
        values = [KeyValue(key=FACT, value="True")]
        console.job.receive_diagnostics(DiagnosticArray(status=[DiagnosticStatus(name=node, values=values)]))
        return console.job.waits

    assert not waits_after("/right/sim_node")
    assert not waits_after("/sim_node")
    assert waits_after("/left/sim_node")
