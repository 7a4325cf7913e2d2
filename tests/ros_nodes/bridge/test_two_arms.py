"""Two arms in one cell: a node and a namespace for each, one safety node, one command of both."""

import contextlib
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from geometry_msgs.msg import PoseStamped
from ros_nodes_graph import namespaced
from std_srvs.srv import Trigger
from waiting import PATIENCE, eventually

from robot_rl.config.nodes import ActorNodeConfig
from robot_rl.env.robot_env import RobotEnv
from robot_rl.env.robot_io import Command, SetPoint
from robot_rl.env.state_assembler import Freshness
from robot_rl.env.task import WorkcellOptions
from robot_rl.errors import ConfigError, StaleStateError
from robot_rl.geometry import Pose
from ros_nodes.bridge.ros_robot_io import RosRobotIO
from ros_nodes.bridge.ros_supervision import RosSupervision
from ros_nodes.bridge.ros_workcell import RosWorkcell
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, topics
from ros_nodes.node.robot_node_base import LIMIT, RobotNode
from ros_nodes.nodes.robot_node import ArmNode
from ros_nodes.nodes.safety_node import SafetyNode
from ros_nodes.nodes.task_node import TaskNode
from ros_nodes.nodes.teleop_node import TeleopNode

ARMS = ("left", "right")
PATIENT = {"max_age": 1.0}
"""A test shall not fail because its machine is busy."""
SLOW = {"state_rate": 25.0, "rate": 50.0}
"""All nodes share one process here."""
LEFTWARDS, UP = np.array([0.0, 0.01, 0.0]), np.array([0.0, 0.0, 0.01])


class Cell:
    """Two stand-ins for real arms, and who commands them."""

    def __init__(self, graph, settings=None, **safety):
        settings, self.graph = settings or {}, graph
        self.actor = graph.add(lambda **made: RobotNode("actor_node", **made))
        self.arms = {
            arm: graph.add(
                namespaced(arm)(ArmNode), arm_name=arm, driver="standin", **PATIENT, **SLOW, **settings.get(arm, {})
            )
            for arm in ARMS
        }
        safety = safety or {"arms": list(ARMS)}
        self.safety = graph.add(SafetyNode, required_nodes=[f"{arm}/robot_node" for arm in ARMS], **PATIENT, **safety)
        self.stopped = []
        self.actor.subscribe(topics.STOPPED, lambda message: self.stopped.append(message.data))

    def connect(self):
        """As an actor does."""
        self.io = RosRobotIO(
            self.actor, self.actor.wall, Arrivals(), freshness=Freshness(1.0, 1.0, max_skew=1.0), arms=ARMS
        )
        assert eventually(lambda: not self.io.missing())
        return self

    def tools(self):
        return {arm: state.T_base_tcp.position for arm, state in self.io.read().arms.items()}

    def go(self, **ways):
        """Both a small way on from where they are."""
        state = self.io.read()
        points = {
            arm: SetPoint(Pose(one.T_base_tcp.position + ways.get(arm, np.zeros(3)), one.T_base_tcp.quaternion))
            for arm, one in state.arms.items()
        }
        self.io.command(Command.of_arms(self.actor.wall.now(), 0.3, points))

    def moves(self, **ways):
        """Whether commands bring the arms on by at least half of one step of each."""
        before = self.tools()

        def there():
            self.go(**ways)
            moved = {arm: place - before[arm] for arm, place in self.tools().items()}
            return all(moved[arm] @ way > 0.5 * (way @ way) for arm, way in ways.items())

        return eventually(there)


@pytest.fixture
def cell(graph):
    made = Cell(graph).connect()
    assert made.moves(left=LEFTWARDS, right=UP), made.stopped
    return made


def test_each_arm_gets_its_part_of_the_command_in_its_own_frame(cell):
    before, poses = cell.tools(), []
    cell.actor.create_subscription(PoseStamped, "/left/current_pose", poses.append, 10)
    assert cell.moves(left=LEFTWARDS)
    after = cell.tools()
    assert after["left"][1] > before["left"][1]
    assert np.linalg.norm(after["right"] - before["right"]) < 0.01, "it was sent nowhere"
    assert eventually(lambda: poses)
    assert poses[-1].header.frame_id == "left_base"


def test_where_one_arm_ends_both_hold_and_it_is_named(cell):
    cell.graph.remove(cell.arms["right"])
    assert eventually(lambda: cell.stopped and "no heartbeat of the required node right/robot_node" in cell.stopped[-1])
    assert eventually(lambda: cell.arms["left"].health()[1].startswith("the arm holds"))


def test_a_second_source_of_one_arms_pose_holds_both_and_a_command_for_one_arm_is_refused_with_the_cure(cell):
    rogue = cell.graph.add(lambda **made: RobotNode("rogue", **made))
    rogue.publisher(topics.POSE.of_arm("right"))
    assert eventually(lambda: cell.stopped[-1].startswith("2 nodes publish on /right/current_pose: "))
    cell.graph.remove(rogue)
    assert cell.moves(left=LEFTWARDS)

    one = cell.actor.create_publisher(topics.COMMAND.type, topics.COMMAND.name, topics.COMMAND.qos)
    command = convert.command_message(Command(cell.actor.wall.now(), 0.3, cell.io.read().T_base_tcp))
    wanted = "one of the two nodes is for several arms; give safety_node their names (arms)"
    assert eventually(lambda: one.publish(command) or any(wanted in text for text in cell.safety.problems))


def test_arms_that_a_program_sends_at_each_other_stop_before_they_meet_and_it_is_said(graph, tmp_path):
    ball = {"capsules": [{"start": [0, 0, 0], "end": [0, 0, 0], "radius": 0.03}], "action_axes": ["y"]}
    box = {"workspace": {"low": [-1, -1, -1], "high": [1, 1, 1], "yaw": 0.0, "tilt": 0.0}}
    arms = {arm: ball | box | {"base_position": [0.0, y, 0.0]} for arm, y in (("left", 0.3), ("right", -0.3))}
    facts = {"instruction": "meet", "max_steps": 9, "control_period": 0.1, "keep_out": {"distance": 0.02}}
    (tmp_path / "meet.yaml").write_text(yaml.safe_dump(facts | {"arms": arms}))
    starts = {"left": {"start": [0.5, -0.2, 0.2]}, "right": {"start": [0.5, 0.2, 0.2]}}
    cell, gaps = Cell(graph, starts, task_file=str(tmp_path / "meet.yaml")).connect(), []

    def near():
        cell.go(left=-LEFTWARDS, right=LEFTWARDS)
        tools = cell.tools()
        gaps.append(tools["left"][1] + 0.3 - (tools["right"][1] - 0.3) - 0.06)
        return gaps[-1] < 0.025

    assert eventually(near), gaps
    for _ in range(20):
        near()
        time.sleep(0.05)
    assert min(gaps) > 0.018
    assert cell.safety.facts()["limited"] > 10


def test_limits_of_one_arm_beyond_its_cap_hold_both_and_are_named(graph):
    cell = Cell(graph, arms=list(ARMS), arm_limits=["left.max_speed=0.9", "right.max_speed=0.1"])
    wider = "the limits of /safety_node are wider than the cap of robot_node: max_speed 0.9 is more than cap_speed 0.5"
    assert eventually(lambda: wider in cell.arms["left"].health()[1]), cell.arms["left"].health()
    assert eventually(lambda: cell.stopped and wider in cell.stopped[-1]), "an arm that obeys nothing holds the other"
    assert cell.safety.facts()[f"{LIMIT}right.max_speed"] == 0.1


def test_states_that_are_too_far_apart_in_time_are_no_state(graph):
    actor = graph.add(lambda **made: RobotNode("actor_node", **made))
    io = RosRobotIO(actor, actor.wall, Arrivals(), arms=ARMS)
    arms = graph.add(lambda **made: RobotNode("arms", **made))
    publishers = {arm: [arms.publisher(topic.of_arm(arm)) for topic in (*topics.MEASURED, topics.TOOL)] for arm in ARMS}

    def read(skew):
        now = actor.wall.now()
        for arm, (pose, twist, wrench, joints, tool) in publishers.items():
            stamp = now - (round(skew * 1e9) if arm == "left" else 0)
            pose.publish(convert.pose_message(stamp, Pose(np.array([0.5, 0.0, 0.2]), np.array([0.0, 1.0, 0.0, 0.0]))))
            twist.publish(convert.twist_message(stamp, np.zeros(6)))
            wrench.publish(convert.wrench_message(stamp, np.zeros(6)))
            joints.publish(convert.joints_message(stamp, ["a"], convert.Joints(np.zeros(1), np.zeros(1))))
            tool.publish(convert.tool_message(stamp, convert.Tool(0.08, 0.0)))
        assert eventually(lambda: io.arms["right"].complete_at(now) and io.arms["left"].stamp("tool") >= stamp - 10**9)
        return io.read()

    assert eventually(lambda: all(p.get_subscription_count() for several in publishers.values() for p in several))
    assert list(read(0.01).arms) == ["left", "right"]
    assert 0.005 < io.skew < 0.05
    with pytest.raises(StaleStateError, match="newest state of the arm left, from the other arms on, is"):
        for _ in range(20):  # what was sent may still be on its way
            read(0.1)


def test_a_reflex_of_one_arm_is_named_and_ended_by_that_arms_own_consent(graph):
    cell = Cell(graph, {"right": {"faults": ["reflex@1.5"]}}).connect()
    assert eventually(lambda: cell.stopped and cell.stopped[-1].startswith("the arm would not obey: arm right: "))
    supervision = RosSupervision(cell.actor, None, lambda text: None)
    other = cell.actor.create_client(Trigger, "left/robot/recover")
    assert other.wait_for_service(PATIENCE)
    other.call_async(Trigger.Request())
    assert not eventually(lambda: cell.stopped[-1] == "", 1.0), "the left arm has nothing to recover from"

    def consented():
        for hold in supervision.holds:
            supervision.release(hold.name)
        return cell.stopped[-1] == ""

    assert eventually(consented)
    assert cell.moves(left=LEFTWARDS, right=UP)


def test_a_task_of_two_arms_from_a_file_is_played_on_them(graph, tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "ros2.md").read_text(encoding="utf-8")
    text = page.partition("### The task of two arms")[2].partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "lift.yaml").write_text(text)
    cell = Cell(graph)
    graph.add(TaskNode, task="lift", file=str(tmp_path / "lift.yaml"), scene="none")
    graph.add(TeleopNode)
    config = ActorNodeConfig(max_age=1.0, max_skew=1.0, graph_timeout=20.0)
    env = RobotEnv(RosWorkcell(cell.actor, config).make("lift", WorkcellOptions()), interventions=True)
    apart, still = np.array([0, 0, 1, 0, 0, -1], np.float32), np.zeros(6, np.float32)

    seen = {}

    def played():
        """Whether ten steps are; where a busy machine was late, an actor plays again, too."""
        try:
            env.reset(seed=0)
            for _ in range(10):
                seen.update(env.step(apart)[0])
        except StaleStateError:
            return False
        return True

    assert eventually(played)
    assert {key.split("/")[1] for key in seen} == set(ARMS)
    assert seen["state/left/tcp_pose"][2] > 0.02 > -0.02 > seen["state/right/tcp_pose"][2]
    client = cell.actor.create_client(Trigger, topics.SUCCESS_SERVICE[0])
    assert client.wait_for_service(PATIENCE)
    client.call_async(Trigger.Request())

    def succeeded():
        with contextlib.suppress(StaleStateError):
            return env.step(still)[4]["step"].success

    assert eventually(succeeded)


def test_a_goal_is_judged_with_one_arm_only(graph, tmp_path):
    (tmp_path / "lift.yaml").write_text(
        "{instruction: a, max_steps: 9, control_period: 0.1, arms: {left: {action_axes: [x], "
        "workspace: {low: [0, 0, 0], high: [1, 1, 1], yaw: 0, tilt: 0}}}}"
    )
    with pytest.raises(ConfigError, match="lift has the arms left, and the judge `goal` leads one arm"):
        graph.add(TaskNode, task="lift", file=str(tmp_path / "lift.yaml"), judge="goal")


def test_an_arm_in_the_namespace_of_another_is_refused_with_the_cure(graph):
    with pytest.raises(ConfigError, match="arm_name is left, and the node is in the namespace /right; start it in one"):
        graph.add(namespaced("right")(ArmNode), arm_name="left", driver="standin")
