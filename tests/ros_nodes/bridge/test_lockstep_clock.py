"""The same code on the other side of topics plays the same episode: in lockstep, bit for bit."""

import numpy as np
import pytest
from ros_nodes_graph import Cell

from robot_rl.cell.step_limits import step_limits
from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.data.schema import Source
from robot_rl.env.registry import make_workcell, task_names
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import GraphError
from ros_nodes.bridge.ros_workcell import RosWorkcell
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.sim_node import SimNode

TO_THE_END = "reach"
"""The task whose episodes are played until they end, by a success and by the step limit."""
MOST = 40
"""Steps after which an operator that has not taken over yet shall do so in the next episode."""


def facts(row):
    observation, reward, terminated, truncated, info = row
    step = info["step"].recorded
    return {
        **observation,
        "action": step.action,
        "sources": np.array([] if step.arm_sources is None else step.arm_sources),
        "result": np.array(
            [reward, terminated, truncated, step.source, info["step"].force_peak, *info["step"].metrics.values()]
        ),
    }


def play_both(envs, seed, policy, **options):
    """Yields the same step of both; ends when both do."""
    firsts = [env.reset(seed=seed, options=options)[0] for env in envs]
    yield firsts
    done = False
    while not done:
        action = policy(firsts[0])
        rows = [env.step(action) for env in envs]
        yield [facts(row) for row in rows]
        ends = {row[2] or row[3] for row in rows}
        assert len(ends) == 1
        done = ends.pop()


@pytest.mark.parametrize("task", sorted({*task_names()} - {"belt", "handover"}))  # of two arms: see below
def test_an_episode_over_topics_is_the_episode_in_one_process(graph, task):
    here = make_workcell(task)
    widened = step_limits(here.task.spec)
    there = Cell(graph, task, safety=widened.limits, cap=widened.cap).workcell
    envs = [RobotEnv(cell, interventions=True) for cell in (there, here)]
    rng, sources = np.random.default_rng(0), set()

    def policy(_):
        return rng.uniform(-0.3, 0.3, envs[0].action_space.shape).astype(np.float32)

    for seed in (3, 4):
        for count, (over_topics, in_process) in enumerate(play_both(envs, seed, policy)):
            assert over_topics.keys() == in_process.keys()
            for key, value in over_topics.items():
                assert np.array_equal(value, in_process[key]), key
            if "result" in over_topics:
                sources.add(Source(int(over_topics["result"][3])))
            if task != TO_THE_END and count >= 10 and (Source.SCRIPT in sources or (seed == 3 and count == MOST)):
                break  # what is of interest now is the new beginning
    assert sources == {Source.POLICY, Source.SCRIPT}, "the operator never took over, or always led"


def test_a_demonstration_over_topics_is_the_same_too(graph):
    envs = [RobotEnv(cell) for cell in (Cell(graph, "reach").workcell, make_workcell("reach"))]
    for over_topics, in_process in play_both(envs, 5, lambda _: np.zeros(3, np.float32), demonstrate=True):
        assert all(np.array_equal(value, in_process[key]) for key, value in over_topics.items())
    assert in_process["result"][1], "the demonstration failed"


def test_frames_over_topics_are_the_same_pixels(graph):
    options = WorkcellOptions(cameras=("wrist", "front"), image_size=(64, 64), estimates=False)
    cell = Cell(graph, "reach", options=options)
    envs = [RobotEnv(c, options=options) for c in (cell.workcell, make_workcell("reach", options))]
    frames = 0
    for over_topics, in_process in play_both(envs, 6, lambda _: np.full(3, 0.2, np.float32)):
        for camera in ("images/wrist", "images/front"):
            assert np.array_equal(over_topics[camera], in_process[camera])
            frames += 1
        if frames > 20:
            break
    assert over_topics["images/wrist"].std() > 1


@pytest.mark.parametrize("task", ["belt", "handover"])
def test_two_arms_over_topics_are_those_in_one_process_also_while_one_of_them_is_led(graph, task):
    here = make_workcell(task)
    widened = step_limits(here.task.spec)
    there = Cell(graph, task, safety={"arms": ["left", "right"], **widened.limits}, cap=widened.cap).workcell
    envs = [RobotEnv(one, interventions=True) for one in (there, here)]
    rng, led = np.random.default_rng(0), []

    def policy(_):
        action = rng.uniform(-0.3, 0.3, envs[0].action_space.shape).astype(np.float32)
        action[-1] = 0.0  # fingers stay as they are
        return action

    for over_topics, in_process in play_both(envs, 6, policy):
        assert over_topics.keys() == in_process.keys()
        for key, value in over_topics.items():
            assert np.array_equal(value, in_process[key]), key
        led.append(tuple(over_topics.get("sources", ())))
        if led.count((Source.SCRIPT, Source.POLICY)) == 5:
            break
    assert set(led[1:]) >= {(Source.POLICY, Source.POLICY), (Source.SCRIPT, Source.POLICY)}


def test_a_cell_whose_safety_node_does_not_know_its_arms_is_told_how(graph):
    graph.add(SimNode, task="handover", lockstep=True)
    graph.add(SafetyNode, lockstep=True)
    actor = graph.add(lambda **made: RobotNode("actor_node", **made))
    with pytest.raises(GraphError, match=r"does not guard these arms; start it with arms:=\[left, right\]"):
        RosWorkcell(actor, ActorNodeConfig(graph_timeout=3.0)).make("handover", WorkcellOptions())
