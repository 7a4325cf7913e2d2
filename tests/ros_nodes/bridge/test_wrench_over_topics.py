"""A feed-forward wrench over topics: an episode is that of one process; without a limit the safety node refuses it."""

import numpy as np
import pytest
from ros_nodes_graph import Cell, Graph
from waiting import eventually

from robot_rl.cell.step_limits import step_limits
from robot_rl.env.registry import make_workcell
from robot_rl.env.robot_env import RobotEnv
from ros_nodes.interface import topics
from sim.tasks.pan_flip_wrench import WRENCH_SPEC

TASK = "pan_flip_wrench"
WIDENED = step_limits(WRENCH_SPEC)
SEED = 101


@pytest.fixture
def graph():
    graph = Graph()
    yield graph
    graph.close()


def demonstration(cell):
    """The recorded steps of an episode that the scripted operator leads, and whether it succeeded."""
    env, rows = RobotEnv(cell), []
    env.start(SEED, "e", demonstrate=True)
    while not (rows and (rows[-1].recorded.terminated or rows[-1].recorded.truncated)):
        rows.append(env.advance(np.zeros(6, np.float32)))
    return [row.recorded for row in rows], rows[-1].success


def test_a_toss_over_topics_is_that_of_one_process_to_the_bit(graph):
    steps, success = demonstration(Cell(graph, TASK, safety=WIDENED.limits, cap=WIDENED.cap).workcell)
    here, _ = demonstration(make_workcell(TASK))
    assert success
    assert max(float(np.abs(step.action[3:]).max()) for step in steps) == 1.0
    assert len(steps) == len(here)
    for over_topics, in_process in zip(steps, here, strict=True):
        assert np.array_equal(over_topics.action, in_process.action)


def test_with_the_limits_that_the_safety_node_has_by_default_it_is_refused_and_the_reason_is_said(graph):
    cell = Cell(graph, TASK, lockstep=False, max_age=1.5, safety={"max_age": 1.5})
    env = RobotEnv(cell.workcell)
    env.start(SEED, "e")
    for _ in range(3):
        env.advance(np.array([0, 0, 0, 1.0, 0, 0], np.float32))
    assert eventually(lambda: cell.safety.facts()["refused"] >= 3)
    said = []
    cell.actor.subscribe(topics.STOPPED, lambda message: said.append(message.data))

    def told():
        env.advance(np.array([0, 0, 0, 1.0, 0, 0], np.float32))
        return any("max_feedforward_force is 0: none is allowed; set that limit" in text for text in said)

    assert eventually(told), said
