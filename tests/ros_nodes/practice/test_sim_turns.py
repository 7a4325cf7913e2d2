"""Two tasks take turns in one simulated scene behind topics: it is handed on, reported, and put back."""

import numpy as np
import pytest
from ros_nodes_graph import Cell

from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, GraphError
from robot_rl.practice.continues import Continues
from ros_nodes.bridge.ros_workcell import RosWorkcell
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.sim_node import SimNode

PAIR = ("relocate_forward", "relocate_back")
IN_PLACE = "the cube lies in the bin into which it belongs"


CUBE = slice(-7, -4)
"""Where the cube lies, in a saved scene [m]."""


@pytest.fixture
def cells(graph):
    graph.add(SimNode, task=PAIR[0], lockstep=True, practice=True)
    graph.add(SafetyNode, lockstep=True)
    actor = graph.add(lambda **made: RobotNode("actor_node", **made))
    workcell = RosWorkcell(actor, ActorNodeConfig(graph_timeout=20.0))
    assert [turn.spec.name for turn in workcell.head.turns] == list(PAIR)
    return [workcell.make(task, WorkcellOptions()) for task in PAIR]


def test_the_scene_is_handed_on_and_put_back_and_time_goes_on(cells):
    forth, back = cells
    assert forth.io is back.io
    assert (forth.task.spec.name, back.task.spec.name) == PAIR
    assert isinstance(forth.task, Continues)
    assert forth.task.home == back.task.home
    forth.task.reset(3)
    before = forth.scene.save()
    assert (forth.task.obstacle(), back.task.obstacle()) == (None, IN_PLACE)
    times = [forth.clock.now()]
    back.task.reset(4)  # lays the scene out for the way back
    assert (forth.task.obstacle(), back.task.obstacle()) == (IN_PLACE, None)
    times.append(back.clock.now())
    back.scene.restore(before)
    assert (forth.task.obstacle(), back.task.obstacle()) == (None, IN_PLACE)
    np.testing.assert_allclose(forth.scene.save()[CUBE], before[CUBE], atol=1e-3)
    forth.task.go_on(5)
    times.append(forth.clock.now())
    assert times == sorted(times)
    state = forth.io.read()
    to_bin = forth.task.observe(state, state.T_base_tcp)["state/bin"]
    assert abs(to_bin[1]) > 0.05
    assert not forth.task.evaluate(state).success


def test_no_episode_begins_in_a_scene_that_is_not_for_it(cells):
    """As when the simulation has been started again, with the scene of the first task, since somebody looked."""
    forth, back = cells
    forth.task.reset(3)
    with pytest.raises(GraphError, match=f"relocate_back cannot begin in the scene as it is: {IN_PLACE}"):
        back.task.go_on(4)
    forth.task.go_on(5)


def test_the_script_of_the_task_brings_a_cube_at_a_wall_into_reach_and_time_goes_on(cells):
    _, back = cells
    back.task.reset(4)
    scene = back.scene.save()
    middle = scene[CUBE][1]
    scene[-7] += 0.045
    back.scene.restore(scene)
    before = back.clock.now()
    back.task.tidy(back.io, back.clock)
    x, y, _ = back.scene.save()[CUBE]
    assert abs(x - 0.5) < 0.02
    assert abs(y - middle) < 0.04
    assert back.clock.now() - before > 5 * NS_PER_S
    assert back.task.obstacle() is None


def test_who_takes_no_turns_is_not_given_one(graph):
    cell = Cell(graph, PAIR[0])
    assert not isinstance(cell.workcell.task, Continues)
    with pytest.raises(ConfigError, match="names no reverse, so it cannot be practised over topics"):
        graph.add(SimNode, task="reach", lockstep=True, practice=True)
    with pytest.raises(ConfigError, match="no person yet: leave console out"):
        graph.add(SimNode, task=PAIR[0], lockstep=True, practice=True, operator="person")
    with pytest.raises(ConfigError, match="only relocate_forward is simulated here"):
        graph.add(SimNode, task=PAIR[0], lockstep=True, episode_task=PAIR[1])


def test_a_scene_that_is_none_is_refused(cells):
    forth, _ = cells
    with pytest.raises(GraphError, match=r"does not take scene: a scene of \d+ joint positions cannot go on from one"):
        forth.scene.restore(np.zeros(3))
