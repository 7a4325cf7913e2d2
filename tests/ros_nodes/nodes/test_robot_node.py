"""The node of a real arm, before a controller that stands in for CRISP's: real nodes, real topics."""

import math
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from cartesian_controller import BASE, LAG, TILTED, Controller
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from robot_io_contract import RobotIOContract, RobotUnderTest
from ros_nodes_graph import DOMAIN, Graph, ManagedClient
from running import environment
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory
from waiting import PATIENCE, eventually

from robot_rl.config.command_limits import CommandLimits
from robot_rl.env.robot_io import Command
from robot_rl.env.state_assembler import Freshness
from robot_rl.errors import ConfigError
from robot_rl.geometry import Pose
from ros_nodes.bridge.ros_robot_io import RosRobotIO
from ros_nodes.bridge.wait import Arrivals
from ros_nodes.interface import convert, topics
from ros_nodes.node.parameters import declare
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.robot_node import ArmNode
from ros_nodes.nodes.safety_node import SafetyNode

OLD = 1.5
"""Largest age of a state [s]: a test shall not fail because its machine is busy."""
GRIPPER = {
    "gripper_topic": "/gripper/commands",
    "gripper_joint": "finger_joint",
    "gripper_closed": 0.8,
    "gripper_opened": 0.0,
    "gripper_width": 0.085,
}
WIDE = {
    "cap_box_low": [-1.0, -1.0, -1.0],
    "cap_box_high": [2.0, 2.0, 2.0],
    "cap_lead": 1.0,
    "cap_turn": 4.0,
    "cap_speed": 10.0,
    "cap_turn_rate": 40.0,
}
"""A cap that is reached by the tests of the cap only."""
ARM = {"wrench_topic": "/external_wrench", "wrench_frame": "base", "max_age": OLD, **GRIPPER, **WIDE}
QUARTER = np.array([math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)])
"""A quarter turn about z."""
AHEAD, UP = np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.0, 0.1])
NAMESPACE = ["--ros-args", "-r", "__ns:=/cell"]


class Actor(RobotNode):
    """Sends commands as the safety node does, and keeps what is measured."""

    def __init__(self, **options):
        super().__init__(options.pop("name", "safety_node"), cli_args=NAMESPACE, **options)
        declare(self, CommandLimits)
        self.seen = {topic.name: [] for topic in (topics.POSE, topics.TWIST, topics.WRENCH, topics.JOINTS, topics.TOOL)}
        for topic in (topics.POSE, topics.TWIST, topics.WRENCH, topics.JOINTS, topics.TOOL):
            self.subscribe(topic, self.seen[topic.name].append)
        self.commands = self.publisher(topics.SAFE_COMMAND)
        self.tare = self.create_client(Trigger, topics.TARE_SERVICE[0])

    def go(self, position, ttl=5.0, width=None):
        command = Command(self.wall.now(), ttl, Pose(np.array(position), TILTED), width)
        self.commands.publish(convert.command_message(command))

    def newest(self, topic):
        assert eventually(lambda: self.seen[topic.name]), topic.name
        return self.seen[topic.name][-1]


class Rig:
    def __init__(self, graph):
        self.graph = graph
        self.controller, self.actor = graph.add(Controller), graph.add(Actor)

    def start(self, **parameters):
        make = lambda **options: ArmNode(cli_args=NAMESPACE, **options)  # noqa: E731
        self.node = self.graph.add(make, **{**ARM, **parameters})
        assert eventually(lambda: self.actor.commands.get_subscription_count() == 1)
        assert eventually(lambda: self.actor.seen[topics.POSE.name])
        assert eventually(lambda: "not known yet" not in self.node.health()[1])
        return self.node

    def says(self, text, level=None):
        def said():
            found, sentence = self.node.health()
            return text in sentence and level in (None, found)

        return eventually(said)


@pytest.fixture
def rig():
    graph = Graph()
    yield Rig(graph)
    graph.close()


class TestBehindACartesianController(RobotIOContract):
    """`RosRobotIO`, the safety node, the robot node and a controller keep the contract of one arm."""

    @pytest.fixture
    def robot(self):
        graph = Graph()
        controller = graph.add(Controller)
        make = lambda kind: lambda **options: kind(cli_args=NAMESPACE, **options)  # noqa: E731
        graph.add(make(ArmNode), **ARM)
        graph.add(make(SafetyNode), max_ttl=3.0, max_speed=2.0, max_acceleration=40.0, max_age=OLD)
        node = graph.add(lambda **options: RobotNode("actor_node", cli_args=NAMESPACE, **options))
        arrivals = Arrivals()
        io = RosRobotIO(node, node.wall, arrivals, freshness=Freshness(max_age=OLD, max_skew=0.5))
        assert arrivals.wait_for(lambda: io.parts.stamp("joints") > 0 and io.listeners() == 1, PATIENCE)
        time.sleep(0.3)  # the safety node hears the arm, too

        def freeze():
            controller.measures = False

        yield RobotUnderTest(
            io, node.wall, freeze, max_age=OLD, joints=7, gripper_width=0.085, patience=2.8, answers=False
        )
        graph.close()


def test_a_command_that_expires_ends_where_the_arm_is(rig):
    rig.start()
    start = rig.controller.position
    rig.actor.go(start + AHEAD, ttl=0.3)
    assert eventually(lambda: len(rig.controller.targets) == 2), rig.controller.refused
    set_point, held = rig.controller.targets
    assert set_point == pytest.approx(start + AHEAD)
    assert start[0] < held[0] < set_point[0]
    assert rig.says("the arm holds: the last command has expired", DiagnosticStatus.OK)
    time.sleep(0.3)
    assert len(rig.controller.targets) == 2, "it is told once to hold"


def test_a_stop_and_the_end_of_the_node_hold_the_arm(rig):
    node = rig.start()
    rig.actor.go(rig.controller.position + AHEAD)
    assert eventually(lambda: len(rig.controller.targets) == 1)
    rig.actor.commands.publish(convert.stop_message(rig.actor.wall.now()))
    assert eventually(lambda: len(rig.controller.targets) == 2)
    rig.actor.go(rig.controller.position + AHEAD)
    assert eventually(lambda: len(rig.controller.targets) == 3)
    rig.graph.remove(node)
    assert eventually(lambda: len(rig.controller.targets) == 4)
    assert rig.controller.targets[3][0] < rig.controller.targets[2][0]


def test_ctrl_c_holds_the_arm_and_ends_the_process_well(rig):
    arguments = [*NAMESPACE, "-p", f"max_age:={OLD}", "-p", "cap_lead:=1.0", "-p", "cap_speed:=10.0"]
    command = [sys.executable, "-m", "ros_nodes.nodes.robot_node", *arguments]
    variables = {"ROS_DOMAIN_ID": str(DOMAIN), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    process = subprocess.Popen(command, env=environment(**variables), stderr=subprocess.PIPE, text=True)
    try:
        assert eventually(lambda: rig.actor.seen[topics.POSE.name], 60.0)
        assert eventually(lambda: rig.actor.commands.get_subscription_count() == 1)

        def follows():
            """Whether it follows a command: at first it does not know yet who commands it."""
            rig.actor.go(rig.controller.position + AHEAD)
            return eventually(lambda: rig.controller.targets, 0.5)

        assert eventually(follows)
        count = len(rig.controller.targets)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0, process.stderr.read()
        assert eventually(lambda: len(rig.controller.targets) > count)
        assert rig.controller.targets[-1][0] < rig.controller.targets[count - 1][0]
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()


def test_set_points_are_in_the_frame_of_the_controller(rig):
    rig.start()
    rig.actor.go(rig.controller.position)
    assert eventually(lambda: rig.controller.targets)
    assert rig.controller.refused == []
    assert rig.actor.newest(topics.POSE).header.frame_id == "base" != BASE


def test_without_measurements_the_arm_is_not_moved_and_it_is_said(rig):
    rig.start(max_age=0.3)
    rig.actor.go(rig.controller.position + AHEAD)
    assert eventually(lambda: rig.controller.targets)
    rig.controller.measures = False
    assert rig.says("is its controller still active?", DiagnosticStatus.ERROR)
    count = len(rig.controller.targets)
    rig.actor.go(rig.controller.position)
    assert eventually(lambda: any("newest pose is" in text for text in rig.node.problems))
    assert len(rig.controller.targets) == count
    rig.controller.measures = True
    assert eventually(lambda: rig.node.health()[0] == DiagnosticStatus.OK)


@pytest.mark.parametrize("twist_topic", ["", "/current_twist"])
def test_the_twist_is_that_of_the_motion_in_the_axes_of_the_base(rig, twist_topic):
    """Measured by differences of poses, or said by the controller in the axes of the tool.

    The controller closes in on its target with a lag, so its speed is the way that is left by the lag.
    """
    rig.start(twist_topic=twist_topic, tool_frame="tool")
    goal = rig.controller.position + 3 * UP
    rig.actor.go(goal)
    assert eventually(lambda: goal[2] - rig.actor.newest(topics.POSE).pose.position.z < 0.02)
    left = {str(m.header.stamp): goal[2] - m.pose.position.z for m in rig.actor.seen[topics.POSE.name]}
    twists = {str(m.header.stamp): convert.twist_of(m) for m in rig.actor.seen[topics.TWIST.name]}
    ratios = [twists[stamp][2] * LAG / way for stamp, way in left.items() if stamp in twists and way < 0.25]
    assert len(ratios) > 5
    assert np.median(ratios) == pytest.approx(1.0, abs=0.2)
    assert np.abs(np.delete(np.array(list(twists.values())), 2, axis=1)).max() < 1e-6


def test_a_wrench_in_the_axes_of_the_base_is_turned_filtered_and_tared(rig):
    rig.controller.wrench = np.array([0.0, 0.0, -8.0, 0.0, 0.0, 0.0])
    rig.start(wrench_cutoff=5.0)

    def force():
        return convert.wrench_of(rig.actor.newest(topics.WRENCH))[:3]

    assert eventually(lambda: force() == pytest.approx([0.0, -8.0, 0.0], abs=0.1)), force()  # the tcp's y is up
    assert rig.actor.tare.wait_for_service(PATIENCE)
    answer = rig.actor.tare.call_async(Trigger.Request())
    assert eventually(answer.done)
    assert answer.result().success
    assert eventually(lambda: np.abs(force()).max() < 0.1)
    rig.controller.wrench = np.array([0.0, 0.0, 12.0, 0.0, 0.0, 0.0])
    assert eventually(lambda: convert.tool_of(rig.actor.newest(topics.TOOL)).peak_force == pytest.approx(20.0, abs=0.2))


def test_a_wrench_in_the_frame_of_its_sensor_is_carried_to_the_tcp(rig):
    """The sensor is 0.1 m behind the tcp: a force across it turns about the tcp."""
    rig.controller.wrench, rig.controller.wrench_frame = np.array([5.0, 0.0, 0.0, 0.0, 0.0, 0.2]), "ft_sensor"
    behind = {"sensor_frame": "ft_sensor", "sensor_pose": [0.0, 0.0, -0.1, 0.0, 0.0, 0.0]}
    rig.start(wrench_frame="", wrench_cutoff=0.0, **behind)
    assert convert.wrench_of(rig.actor.newest(topics.WRENCH)) == pytest.approx([5.0, 0.0, 0.0, 0.0, -0.5, 0.2])


@pytest.mark.parametrize(
    ("frame", "parameters", "reason"),
    [
        (
            "ft_sensor",
            {"wrench_frame": "tcp"},
            "neither the base's ('fr3_link0') nor the tcp's; if it is the tcp's, set",
        ),
        ("fr3_link0", {"wrench_frame": "tcp"}, "the base's, but wrench_frame is tcp"),
        ("", {"wrench_frame": ""}, "a wrench names no frame in its header; set wrench_frame to tcp or base"),
    ],
)
def test_a_wrench_in_a_frame_that_is_not_known_is_refused(rig, frame, parameters, reason):
    rig.controller.wrench_frame = frame
    rig.start(**parameters)
    assert eventually(lambda: any(reason in text for text in rig.node.problems)), rig.node.problems
    assert rig.actor.seen[topics.WRENCH.name] == []


def test_poses_in_another_frame_than_the_arms_base_are_refused(rig):
    rig.start()
    rig.controller.base = "world"
    assert eventually(
        lambda: any("in the frame 'world', the arm's base is 'fr3_link0'" in t for t in rig.node.problems)
    )
    assert rig.says("newest pose is", DiagnosticStatus.ERROR)


def test_without_a_wrench_it_is_zero_and_that_is_said(rig):
    rig.start(wrench_topic="")
    assert not convert.wrench_of(rig.actor.newest(topics.WRENCH)).any()
    assert rig.says("forces are not measured", DiagnosticStatus.WARN)


def test_the_gripper_counts_as_its_controller_does(rig):
    rig.start()
    assert convert.tool_of(rig.actor.newest(topics.TOOL)).gripper_width == pytest.approx(0.0)
    rig.actor.go(rig.controller.position, width=0.0425)
    assert eventually(lambda: rig.controller.gripper_values == [pytest.approx(0.4)])
    assert eventually(
        lambda: convert.tool_of(rig.actor.newest(topics.TOOL)).gripper_width == pytest.approx(0.0425, abs=1e-6)
    )
    rig.actor.go(rig.controller.position)
    assert eventually(lambda: len(rig.controller.targets) == 2)
    assert len(rig.controller.gripper_values) == 1, "a command without a width leaves it alone"


def test_the_arms_joints_are_those_that_are_not_the_grippers_or_those_that_are_named(rig):
    node = rig.start()
    assert convert.joints_of(rig.actor.newest(topics.JOINTS)).position.tolist() == list(range(1, 8))
    assert rig.actor.newest(topics.JOINTS).name == [f"fr3_joint{number}" for number in range(1, 8)]
    rig.graph.remove(node)
    rig.actor.seen[topics.JOINTS.name].clear()
    rig.start(joint_names=["fr3_joint3", "fr3_joint1"])
    assert convert.joints_of(rig.actor.newest(topics.JOINTS)).position.tolist() == [3.0, 1.0]


@pytest.mark.parametrize(("fault", "reason"), [("spoil", "NaN"), ("stamp_shift", "does not rise")])
def test_broken_poses_are_refused_and_named(rig, fault, reason):
    rig.start(max_age=0.5)
    setattr(rig.controller, fault, {"spoil": float("nan"), "stamp_shift": -30 * 10**9}[fault])
    assert eventually(lambda: any(reason in text for text in rig.node.problems)), rig.node.problems
    assert rig.says("s old", DiagnosticStatus.ERROR)
    count = len(rig.actor.seen[topics.POSE.name])
    time.sleep(0.2)
    assert len(rig.actor.seen[topics.POSE.name]) == count


def test_somebody_else_who_sets_the_target_is_named(rig):
    rig.start()
    other = rig.graph.add(lambda **options: RobotNode("crisp_py_demo", **options))
    other.create_publisher(PoseStamped, "/target_pose", 1)
    assert rig.says("2 nodes publish on /target_pose: crisp_py_demo, robot_node; only one may", DiagnosticStatus.ERROR)


@pytest.mark.parametrize("topic", ["/cell/safe_command", "/target_pose"])
def test_the_arm_follows_nobody_while_two_nodes_command_it(rig, topic):
    rig.start()
    start = rig.controller.position
    rogue = rig.graph.add(lambda **options: RobotNode("rogue", **options))
    message = MultiDOFJointTrajectory if "safe" in topic else PoseStamped
    rogue.create_publisher(message, topic, 1)
    assert rig.says(f"2 nodes publish on {topic}: ", DiagnosticStatus.ERROR)
    count = len(rig.controller.targets)
    rig.actor.go(start + AHEAD)
    assert eventually(lambda: any("only one may" in text for text in rig.node.problems)), rig.node.problems
    assert len(rig.controller.targets) == count
    rig.graph.remove(rogue)
    assert rig.says("", DiagnosticStatus.OK)
    rig.actor.go(start + AHEAD)
    assert eventually(lambda: len(rig.controller.targets) > count)


def test_nobody_but_the_safety_node_of_the_same_namespace_moves_the_arm(rig):
    rig.start()
    start = rig.controller.position
    rig.graph.remove(rig.actor)
    rogue = rig.actor = rig.graph.add(lambda **options: Actor(name="rogue", **options))
    assert rig.says("/cell/rogue publishes on /cell/safe_command; only /cell/safety_node may", DiagnosticStatus.ERROR)
    count = len(rig.controller.targets)
    rogue.go(start + AHEAD)
    assert eventually(lambda: any("only /cell/safety_node may" in text for text in rig.node.problems))
    assert len(rig.controller.targets) == count


@pytest.mark.parametrize(
    ("cap", "sentence"),
    [
        ({"cap_box_high": [0.6, 0.3, 0.5]}, "box_high [0.7, 0.3, 0.5] is outside cap_box_high [0.6, 0.3, 0.5]"),
        ({"cap_speed": 0.2}, "max_speed 0.3 is more than cap_speed 0.2"),
        ({"cap_lead": 0.02}, "max_speed * reaction_time 0.027 is more than cap_lead 0.02"),
        ({"cap_turn_rate": 1.0}, "max_turn_rate 1.5 is more than cap_turn_rate 1"),
    ],
)
def test_limits_of_the_safety_node_that_are_wider_than_the_arms_own_are_refused_by_name(rig, cap, sentence):
    rig.start(**cap)
    assert rig.says("/cell/safety_node are wider than the cap of robot_node", DiagnosticStatus.ERROR)
    assert rig.says(sentence)
    rig.actor.go(rig.controller.position)
    assert eventually(lambda: any(sentence in text for text in rig.node.problems)), rig.node.problems
    assert rig.controller.targets == []


def test_the_arms_own_cap_holds_whatever_the_safety_node_passes(rig):
    rig.start(cap_lead=0.04, cap_box_high=[0.7, 0.3, 0.5])
    start = rig.controller.position
    rig.actor.go(start + AHEAD)
    assert eventually(lambda: rig.controller.targets)
    assert np.linalg.norm(rig.controller.targets[0] - start) == pytest.approx(0.04)
    assert any("brought nearer" in text for text in rig.node.problems)
    rig.actor.go([0.71, 0.0, 0.2])
    assert rig.says("the arm holds: its set-point is 10 mm outside the arm's own box")
    assert eventually(lambda: len(rig.controller.targets) == 2)
    assert np.linalg.norm(rig.controller.targets[-1] - start) < 0.04, "it holds where it is"


def test_an_arm_that_moves_faster_than_its_own_cap_holds(rig):
    rig.start(cap_speed=0.31)
    rig.actor.go(rig.controller.position + 2 * AHEAD)  # 0.2 m with a time constant of 0.2 s: 1 m/s
    assert rig.says("m/s, the arm's own cap is 0.31 m/s")
    assert eventually(lambda: len(rig.controller.targets) == 2)
    assert rig.says("the arm holds", DiagnosticStatus.OK)


def test_a_second_commander_stops_a_motion_that_has_begun(rig):
    rig.start()
    rig.actor.go(rig.controller.position + AHEAD, ttl=60.0)
    assert eventually(lambda: len(rig.controller.targets) == 1)
    rogue = rig.graph.add(lambda **options: RobotNode("rogue", **options))
    rogue.create_publisher(MultiDOFJointTrajectory, "/cell/safe_command", 1)
    assert eventually(lambda: len(rig.controller.targets) == 2)
    assert "rogue" in rig.node.health()[1]


def test_a_controller_that_is_not_there_is_named(rig):
    rig.start()
    rig.graph.remove(rig.controller)
    assert rig.says("no controller listens to /target_pose; is it active", DiagnosticStatus.ERROR)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"pose_topic": "/cell/current_pose"}, "this node publishes on /cell/current_pose itself; .* namespace"),
        ({"joints_topic": "joint_states"}, "joints_topic: this node publishes on /cell/joint_states itself"),
        ({"gripper_joint": ""}, "a gripper needs gripper_joint and one of gripper_topic and gripper_action"),
        ({"gripper_opened": 0.8}, "have to differ"),
        ({"sensor_pose": [0.0, 0.1]}, "sensor_pose needs six numbers"),
    ],
)
def test_wrong_parameters_are_named(rig, parameters, reason):
    with pytest.raises(ConfigError, match=reason):
        rig.start(**parameters)


def test_an_inactive_arm_is_measured_and_does_not_move_and_no_transition_moves_it(rig):
    node = rig.start(start_inactive=True)
    managed = ManagedClient(rig.actor, "/cell/robot_node")
    assert managed.state() == "inactive"
    start = rig.controller.position
    rig.actor.go(start + AHEAD)
    assert eventually(lambda: any("robot_node is inactive: ros2 lifecycle set" in text for text in node.problems))
    assert rig.says("robot_node is inactive", DiagnosticStatus.ERROR)
    early = Command(rig.actor.wall.now(), 5.0, Pose(start + AHEAD, TILTED))
    assert managed.set("activate")
    rig.actor.commands.publish(convert.command_message(early))
    assert eventually(lambda: any("before robot_node was activated" in text for text in node.problems))
    assert rig.controller.targets == []
    rig.actor.go(start + AHEAD)
    assert eventually(lambda: len(rig.controller.targets) == 1)
    assert managed.set("deactivate")
    assert len(rig.controller.targets) == 2 or eventually(lambda: len(rig.controller.targets) == 2)
    assert rig.controller.targets[1][0] < rig.controller.targets[0][0], "held where it was"
