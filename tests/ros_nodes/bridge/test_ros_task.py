"""An episode over topics begins when its commands reach the arm, and not before."""

import queue

import pytest
from ros_nodes_graph import Cell
from waiting import PATIENCE, eventually

from robot_rl.errors import GraphError
from ros_nodes.interface import topics
from ros_nodes.node.robot_node_base import RobotNode


class Reset:
    """A reset in a thread of its own."""

    def __init__(self, graph, task):
        self._ends = queue.Queue()
        graph.thread(lambda: self._run(task))

    def _run(self, task):
        try:
            task.reset(0)
        except GraphError as error:
            self._ends.put(error)
        else:
            self._ends.put(None)

    def waits(self):
        return self._ends.empty()

    def end(self):
        return self._ends.get(timeout=PATIENCE)


@pytest.fixture
def cell(graph):
    return Cell(graph)


def test_it_waits_for_the_end_of_a_second_commander_and_of_a_latched_stop_and_its_first_step_is_not_held(graph, cell):
    task = cell.workcell.task
    rogue = graph.add(lambda **options: RobotNode("rogue", **options))
    rogue.publisher(topics.COMMAND)
    reset = Reset(graph, task)
    assert eventually(lambda: "2 nodes publish on /command: actor_node, rogue" in cell.safety.health()[1])
    cell.safety.guard.trip("asked for by a test")
    graph.remove(rogue)
    assert eventually(lambda: "asked for by a test" in cell.safety.health()[1])
    assert reset.waits()
    cell.safety.guard.release()
    assert reset.end() is None
    assert not task.evaluate(cell.workcell.io.read()).held


def test_it_ends_when_it_is_waited_for_no_longer(graph, cell):
    cell.safety.guard.trip("asked for by a test")
    reset = Reset(graph, cell.workcell.task)
    cell.workcell.task.give_up()
    assert "is waited for no longer" in str(reset.end())
