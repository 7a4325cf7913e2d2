"""A real arm's cell, whole: its task and its person, from the scene that is made ready to the judgement."""

import time
from dataclasses import replace

import numpy as np
import pytest
import yaml
from cartesian_controller import TILTED
from fakes import fake_workcell
from rclpy.parameter import Parameter
from real_cell import EXAMPLE, RealCell
from std_srvs.srv import Trigger
from waiting import PATIENCE, eventually

from robot_rl.cell.goal import Goal, GoalConfig
from robot_rl.cell.task_file import load_task
from robot_rl.clock import NS_PER_S
from robot_rl.data.schema import Source
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import Command
from robot_rl.env.task_arms import PROPRIOCEPTION, WRENCH
from robot_rl.errors import ConfigError, GraphError, RobotLostError
from robot_rl.geometry import Pose, quat_rotate
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import TaskHead, from_text
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.goal_judge import MAX_AGE, GoalJudge
from ros_nodes.nodes.task_node import MEASURES_PATIENCE, TaskNode

START, FAILURE = 7, 2
"""Buttons of `maps/joy.yaml`."""


def test_a_person_makes_ready_leads_and_judges(graph):
    cell = RealCell(graph)
    assert cell.env.spec_task.name == "plug"
    waits = lambda: cell.task.facts()["waits_for_person"]  # noqa: E731
    cell.reset(graph, lambda: eventually(lambda: cell.person.press(START) or not waits()), demonstrate=True)
    assert cell.person.call("ready").message == "no episode waits to begin"
    start = cell.controller.position
    cell.person.lead(1.0)
    steps, ended = [], False
    while not ended:
        _, reward, terminated, truncated, info = cell.env.step(np.zeros(4, np.float32))
        steps.append(info["step"].recorded)
        ended = terminated or truncated
        if len(steps) == 6:
            assert cell.person.call("success").success
    assert (terminated, reward, info["step"].success) == (True, 1.0, True)
    assert len(steps) < 12
    assert sum(step.source == Source.HUMAN for step in steps) >= 4
    assert cell.controller.position[2] - start[2] > 0.002
    assert cell.person.call("success").message == "no episode is running that is not judged yet"
    assert cell.task.facts()["success"] == 1

    cell.reset(graph, lambda: cell.person.call("ready"))
    cell.person.lead(0.0)
    time.sleep(0.3)  # teleop_node has to notice the new episode, at which it forgets the buttons
    cell.person.press(FAILURE)
    for _ in range(20):
        *_, terminated, _, info = cell.env.step(np.zeros(4, np.float32))
        if terminated:
            break
    assert info["step"].failure == "judged by the operator"


def test_the_arm_goes_to_its_start_pose_before_the_person_is_asked(graph, tmp_path):
    task = yaml.safe_load(EXAMPLE.read_text())
    task["start"] = {"position": [0.5, -0.06, 0.22], "quaternion": TILTED.tolist(), "retreat": 0.03, "speed": 0.2}
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task))
    cell = RealCell(graph, task_file=tmp_path / "task.yaml")
    asked_at = []
    cell.reset(graph, lambda: asked_at.append(cell.controller.position) or cell.person.call("ready"))
    assert asked_at[0] == pytest.approx([0.5, -0.06, 0.22], abs=5e-3)
    assert np.array(cell.controller.targets)[:, 1].min() < -0.02, (
        "back along the tool, which points along the base's -y"
    )


def test_a_step_in_which_the_safety_node_let_nothing_through_is_recorded_as_a_hold(graph):
    cell = RealCell(graph)
    cell.reset(graph, lambda: cell.person.call("ready"))
    action = np.array([0.5, 0.0, 0.0, 0.0], np.float32)
    assert cell.env.step(action)[4]["step"].recorded.source == Source.POLICY
    estop = cell.person.publisher(topics.ESTOP)
    assert eventually(lambda: estop.get_subscription_count() == 1)
    estop.publish(topics.ESTOP.type(data=True))
    time.sleep(0.3)
    held = [cell.env.step(action)[4]["step"].recorded for _ in range(3)]
    assert [step.source for step in held] == [Source.HOLD] * 3
    assert not np.any([step.action for step in held])
    assert np.array_equal(held[0].action_policy, action)


def test_a_second_request_takes_the_place_of_one_that_nobody_waits_for(graph):
    cell = RealCell(graph)
    client = cell.actor.create_client(Trigger, topics.RESET[0])
    assert client.wait_for_service(PATIENCE)
    first = client.call_async(Trigger.Request())
    assert eventually(lambda: cell.task.facts()["waits_for_person"])
    second = client.call_async(Trigger.Request())
    assert eventually(first.done)
    assert "another reset" in first.result().message
    assert cell.person.call("ready").success
    assert eventually(second.done)
    assert second.result().success


def test_ctrl_c_does_not_wait_for_the_person(graph):
    cell = RealCell(graph)
    graph.thread(lambda: eventually(lambda: cell.task.facts()["waits_for_person"]) and cell.env.give_up())
    began = time.monotonic()
    with pytest.raises(RobotLostError, match="is waited for no longer"):
        cell.env.start(0, "episode-00000")
    assert time.monotonic() - began < 10.0, "the person has a minute"


def test_the_seed_may_change_at_any_time(graph):
    node = graph.add(TaskNode, task="plug", file=str(EXAMPLE))
    assert node.set_parameters([Parameter("episode_seed", value=2**40)])[0].successful
    assert "restart it" in node.set_parameters([Parameter("task", value="other")])[0].reason


FACTS = (
    "instruction: go, max_steps: 9, control_period: 0.1, workspace: {low: [0, 0, 0], high: [1, 1, 1], yaw: 0, tilt: 0}"
)
PLACE = "{{low: [0, 0, 0], high: [1, 1, 1], yaw: 0, tilt: 0}}"
ARMS = (
    "{{instruction: a, max_steps: 1, control_period: 0.1, arms: {{left: {{workspace: "
    + PLACE
    + ", action_axes: [{}]}}, right: {{workspace: "
    + PLACE
    + "}}}}}}"
)


def test_a_task_that_commands_a_wrench_is_refused_at_the_start(graph, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(f"{{{FACTS}, action_axes: [x], wrench_axes: [z], action_force: 5.0}}")
    with pytest.raises(ConfigError, match="task a: wrench_axes are z, and an arm behind robot_node follows set-points"):
        graph.add(TaskNode, task="a", file=str(path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "cannot be read as a task.*task.yaml is an example"),
        ("- 1", "has to be a mapping"),
        ("speed: 3", "unknown speed; valid: instruction, max_steps"),
        ("max_steps: many", "instruction: .*; max_steps: "),
        ("max_steps: [1", "cannot be read as a task: [^\n]*is not YAML[^\n]*example$"),
        (FACTS, r"action_axes is missing; list the axes that the policy moves, of x, y, z, roll"),
        (f"{FACTS}, action_axes: [x, why]", r"action_axes: why; valid: x, y, z, roll, pitch, yaw, each once"),
        (f"{FACTS}, action_axes: [x, x]", r"action_axes: x, x; valid: "),
        (f"{FACTS}, arms: [left]", r"arms has to name each arm, with its fields below: workspace, "),
        (f"{FACTS}, arms: {{left: {{}}}}", r"workspace: with several arms, these stand below each of them in arms"),
        (
            "arms: {left: {workspace: {}, max_steps: 3}}",
            r"arms.left: unknown max_steps; valid: workspace, ",
        ),
        (ARMS.format("x"), r"arms.right: action_axes is missing; list"),
        (ARMS.format("why"), r"arms.left: action_axes: why; valid"),
    ],
)
def test_a_file_that_is_no_task_is_named(tmp_path, text, reason):
    path = tmp_path / "a.yaml"
    if text is not None:
        path.write_text(f"{{{text}}}" if text.startswith(FACTS) else text)
    with pytest.raises(ConfigError, match=f"a.yaml: {reason}"):
        load_task(path, "a")


ALONE = {"judge": "goal", "scene": "none", "goal_spread": [0.02, 0.02, 0.02], "goal_tolerance": 0.006}


def play(env, action, most):
    """The steps of an episode."""
    steps = []
    while len(steps) < most and not (steps and (steps[-1].recorded.terminated or steps[-1].recorded.truncated)):
        steps.append(env.step(action)[4]["step"])
    return steps


def test_it_draws_demonstrates_and_judges_without_a_person(graph):
    cell = RealCell(graph, **ALONE)
    assert cell.env.can_demonstrate
    observation, _ = cell.env.reset(seed=3, options={"demonstrate": True})
    pose = cell.workcell.io.read().T_base_tcp
    drawn = Goal(GoalConfig((0.02, 0.02, 0.02)))
    drawn.draw(3, pose)
    assert pose.position + quat_rotate(pose.quaternion, observation["state/target"]) == pytest.approx(
        drawn.point, abs=1e-3
    ), "in the frame of the tcp, which is tilted here"

    steps = play(cell.env, np.zeros(4, np.float32), 60)
    assert steps[-1].success, [step.metrics for step in steps]
    assert steps[-1].recorded.reward == 1.0
    sources = {step.recorded.source for step in steps}
    assert Source.SCRIPT in sources
    assert Source.POLICY not in sources, "a busy machine may hold the arm in a step, but nobody else leads"
    assert cell.controller.position == pytest.approx(drawn.point, abs=0.01)
    assert cell.task.facts()["success"] == 1

    cell.env.reset(seed=4)
    idle = play(cell.env, np.zeros(4, np.float32), 8)
    assert not any(step.success for step in idle)
    assert Source.SCRIPT not in {step.recorded.source for step in idle}
    assert idle[-1].metrics["distance"] > 0.006
    assert cell.task.facts()["success"] == 1


@pytest.mark.parametrize(("topic", "observed"), [("/external_wrench", True), ("", False)])
def test_forces_are_observed_where_the_arm_measures_them(graph, topic, observed):
    cell = RealCell(graph, wrench_topic=topic, **ALONE)
    assert cell.workcell.measures_wrench is observed
    observation, _ = cell.env.reset(seed=3)
    in_process = RobotEnv(replace(fake_workcell(), measures_wrench=observed))
    assert (WRENCH in observation) is (WRENCH in cell.env.observation_specs) is observed
    of_arm = [env.observation_specs.keys() & PROPRIOCEPTION for env in (cell.env, in_process)]
    assert of_arm[0] == of_arm[1]


def test_an_arm_that_does_not_say_what_it_measures_is_taken_to_measure_forces(graph):
    arm, heads = graph.add(lambda **options: RobotNode("arm", **options)), []
    graph.add(TaskNode, task="plug", file=str(EXAMPLE))
    arm.subscribe(topics.HEAD, lambda message: heads.append(from_text(TaskHead, message.data).measures_wrench))
    assert eventually(lambda: heads == [None])
    arm.publisher(topics.POSE)
    began = time.monotonic()
    assert eventually(lambda: heads == [None, True])
    assert time.monotonic() - began > 0.5 * MEASURES_PATIENCE
    arm.publisher(topics.MEASURES).publish(topics.MEASURES.type(data="joints pose twist"))
    assert eventually(lambda: heads == [None, True, False]), "it may say so later"


def test_no_episode_begins_where_the_arm_is_not_measured(graph):
    cell = RealCell(graph, **ALONE)
    cell.controller.measures = False
    time.sleep(2 * MAX_AGE)
    with pytest.raises(GraphError, match=r"the task could not be made ready: .*pose of the arm is .* s old"):
        cell.env.reset(seed=3)


def test_a_goal_in_two_dimensions_is_refused(graph):
    with pytest.raises(ConfigError, match="goal_spread has 2 numbers; it is x, y, z"):
        graph.add(TaskNode, task="plug", file=str(EXAMPLE), judge="goal", goal_spread=[0.1, 0.1])


SPEC = load_task(EXAMPLE, "plug")
PERIOD = round(SPEC.control_period * NS_PER_S)
HERE = Pose(np.array([0.5, 0.0, 0.2]), np.array([1.0, 0.0, 0.0, 0.0]))


class Arm(RobotNode):
    """Says where the arm is, and what it was commanded, with the stamps that a test gives."""

    def __init__(self, **options):
        super().__init__("arm", **options)
        self.poses, self.commands = self.publisher(topics.POSE), self.publisher(topics.SAFE_COMMAND)

    def measure(self, stamp):
        self.poses.publish(convert.pose_message(stamp, HERE))

    def command(self, stamp):
        """Waits until it has arrived: of commands that nobody has read yet only the newest is kept."""
        self.commands.publish(convert.command_message(Command(stamp, 1.0, HERE)))
        time.sleep(0.2)


def begun(graph):
    """An episode has begun: the arm, the stamps of what was judged since, and when it began [ns]."""
    arm, node, judged, seen = graph.add(Arm), graph.add(lambda **options: RobotNode("task", **options)), [], []
    goal = Goal(GoalConfig((0.02, 0.02, 0.02)))
    judge = GoalJudge(
        node, SPEC, goal, estimate=lambda stamp, _: seen.append(stamp), judge=lambda stamp, _: judged.append(stamp)
    )
    assert eventually(lambda: arm.measure(arm.wall.now()) or seen)
    assert eventually(lambda: arm.commands.get_subscription_count() == 1)
    judge.begin(3)
    return arm, judged, arm.wall.now()


def measured_until(arm, stamp, judged, count):
    """Whether that many steps are judged, as the same late measurement is read again and again."""
    return eventually(lambda: arm.measure(stamp) or len(judged) >= count)


def test_a_step_whose_last_pose_is_read_after_the_next_command_is_judged_all_the_same(graph):
    arm, judged, start = begun(graph)
    for step in range(2):
        arm.command(start + step * PERIOD)
    assert measured_until(arm, start + PERIOD, judged, 1)
    assert measured_until(arm, start + 2 * PERIOD, judged, 2)
    assert judged == [start + PERIOD, start + 2 * PERIOD]


def test_steps_that_one_pose_ended_are_judged_once(graph):
    arm, judged, start = begun(graph)
    for step in range(3):
        arm.command(start + step * PERIOD)
    assert measured_until(arm, start + 3 * PERIOD, judged, 1)
    time.sleep(0.1)
    assert judged == [start + 3 * PERIOD], "the arm was there once, which is no success of several steps"
