"""The safety node between whoever commands and the arm: a real node, real topics, and an arm that can be broken."""

import time

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_nodes_graph import Graph, ManagedClient
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from waiting import PATIENCE, eventually

from robot_rl.clock import NS_PER_S
from robot_rl.config.nodes import SafetyNodeConfig
from robot_rl.env.robot_io import Command
from robot_rl.geometry import Pose
from ros_nodes.interface import convert, qos, topics
from ros_nodes.node.robot_node_base import LIMIT, RobotNode
from ros_nodes.nodes.safety_node import SafetyNode

DOWN = np.array([0.0, 1.0, 0.0, 0.0])
HERE = Pose(np.array([0.5, 0.0, 0.2]), DOWN)


class Arm(RobotNode):
    """Measures 50 times a second, and keeps what reaches it."""

    def __init__(self, **options):
        super().__init__("arm", **options)
        self.measures, self.beats, self.wrench, self.pose = True, True, np.zeros(6), HERE
        self.received, self.stopped = [], []
        self._p, self._w = self.publisher(topics.POSE), self.publisher(topics.WRENCH)
        self.subscribe(topics.SAFE_COMMAND, lambda m: self.received.append((time.monotonic(), convert.command_of(m))))
        self.subscribe(topics.STOPPED, lambda m: self.stopped.append(m.data))
        self.timer(0.02, self._measure)

    def _measure(self):
        if self.measures:
            self._p.publish(convert.pose_message(self.wall.now(), self.pose))
            self._w.publish(convert.wrench_message(self.wall.now(), self.wrench))

    def _beat(self):
        if self.beats:
            super()._beat()


class Hand(RobotNode):
    """Commands."""

    def __init__(self, **options):
        super().__init__(options.pop("name", "hand"), **options)
        self._c, self._e = self.publisher(topics.COMMAND), self.publisher(topics.ESTOP)
        self.release_client = self.create_client(Trigger, topics.RELEASE_SERVICE[0])
        self.estop_client = self.create_client(Trigger, topics.STOP_SERVICE[0])

    def go(self, offset=0.01):
        self.send(Command(self.wall.now(), 0.3, Pose(HERE.position + np.array([offset, 0, 0]), DOWN)))

    def send(self, command):
        self._c.publish(convert.command_message(command))

    def estop(self):
        self._e.publish(Bool(data=True))

    def call(self, client):
        assert client.wait_for_service(PATIENCE)
        future = client.call_async(Trigger.Request())
        assert eventually(future.done)
        return future.result()


class Rig:
    def __init__(self, graph, **parameters):
        self.graph, self._parameters = graph, parameters
        self.arm, self.hand = graph.add(Arm), graph.add(Hand)
        self.start()
        assert eventually(self.moves), self.arm.stopped

    def start(self):
        # Generous times: what is tested is that it holds, not how fast a busy machine is.
        times = {"heartbeat_timeout": 1.0, "max_age": 1.0}
        self.safety = self.graph.add(SafetyNode, required_nodes=["arm"], **times, **self._parameters)

    def moves(self):
        """Whether a command gets through."""
        count = len(self.arm.received)
        self.hand.go()
        return eventually(lambda: any(c is not None for _, c in self.arm.received[count:]), 0.5)

    def holds(self, why):
        """Whether a stop comes without any command, with the reason for all to see; then no command gets through."""
        stopped = eventually(lambda: self.arm.received[-1][1] is None)
        said = eventually(lambda: self.arm.stopped and why in self.arm.stopped[-1])
        count = len(self.arm.received)
        self.hand.go()
        answered = eventually(lambda: len(self.arm.received) > count)
        refused = all(c is None for _, c in self.arm.received[count:])
        level, sentence = self.safety.health()
        return stopped and said and answered and refused and why in sentence and level != b"\x00"


@pytest.fixture
def rig():
    graph = Graph()
    yield Rig(graph)
    graph.close()


def test_a_far_set_point_arrives_limited(rig):
    lead = SafetyNodeConfig().max_speed * SafetyNodeConfig().reaction_time

    def arrives():
        time.sleep(0.2)  # from rest, so that the acceleration is not what limits it
        rig.hand.go(offset=0.19)
        newest = lambda: rig.arm.received[-1][1]  # noqa: E731  (a stop, where a busy machine held somebody up)
        return eventually(lambda: newest() and newest().T_base_target.position[0] == pytest.approx(0.5 + lead), 1.0)

    assert eventually(arrives)


def test_the_arm_holds_when_a_required_node_falls_silent_and_goes_on_when_it_is_back(rig):
    rig.arm.beats = False
    assert rig.holds("no heartbeat of the required node arm")
    rig.arm.beats = True
    assert eventually(rig.moves)
    assert rig.arm.stopped[-1] == ""


def test_the_arm_holds_while_it_is_not_measured(rig):
    rig.arm.measures = False
    assert rig.holds("the arm's pose is")
    rig.arm.measures = True
    assert eventually(rig.moves)


def test_a_nan_in_the_wrench_is_no_measurement(rig):
    rig.arm.wrench = np.full(6, np.nan)
    assert rig.holds("the arm's wrench is")


def test_too_much_force_latches(rig):
    rig.arm.wrench = np.array([0.0, 0.0, 90.0, 0, 0, 0])
    assert rig.holds("contact force of 90 N")
    rig.arm.wrench = np.zeros(6)
    assert not rig.moves()
    time.sleep(0.1)
    assert rig.hand.call(rig.hand.release_client).success
    assert eventually(rig.moves)


@pytest.mark.parametrize("by", ["topic", "service"])
def test_the_emergency_stop_stays_until_it_is_released_by_hand(rig, by):
    if by == "topic":
        rig.hand.estop()
    else:
        assert rig.hand.call(rig.hand.estop_client).success
    assert rig.holds(f"emergency stop: asked for {'on the' if by == 'topic' else 'by the'} {by}")
    rig.hand._e.publish(Bool(data=False))  # is not how it is released
    assert not rig.moves()
    assert rig.hand.call(rig.hand.release_client).success
    assert eventually(rig.moves)


def test_in_lockstep_an_emergency_stop_answers_the_newest_command_too():
    """A reader keeps the newest message only, and the simulation goes on once that command is answered."""
    graph = Graph()
    try:
        rig = Rig(graph, lockstep=True)
        heard = []
        rig.arm.subscribe(topics.SAFE_COMMAND, lambda m: heard.append((convert.stamp_of(m.header.stamp), m)))
        stamp = rig.hand.wall.now()
        rig.hand.send(Command(stamp, 0.3, HERE))
        assert eventually(lambda: heard and heard[-1][0] == stamp)
        rig.hand.estop()
        assert eventually(lambda: convert.command_of(heard[-1][1]) is None)
        assert heard[-1][0] == stamp
        rig.hand.call(rig.hand.release_client)
        assert eventually(rig.moves), "later commands pass again"
    finally:
        graph.close()


def test_a_latched_stop_outlives_its_node_until_somebody_releases_it(tmp_path):
    graph = Graph()
    try:
        rig = Rig(graph, latch_file=str(tmp_path / "latched"))
        rig.hand.estop()
        assert rig.holds("emergency stop: asked for on the topic estop")
        for _ in range(2):
            graph.remove(rig.safety)
            rig.start()
            assert eventually(lambda: rig.holds("emergency stop: asked for on the topic estop; release it by hand"))
        assert eventually(lambda: rig.hand.call(rig.hand.release_client).success)
        assert eventually(rig.moves)
        graph.remove(rig.safety)
        rig.start()
        assert eventually(rig.moves)
    finally:
        graph.close()


def test_two_nodes_that_command_are_both_refused_and_named(rig):
    other = rig.graph.add(lambda **options: Hand(name="intruder", **options))
    assert rig.holds("2 nodes publish on /command: hand, intruder; only one may")
    count = len(rig.arm.received)
    other.go()
    assert eventually(lambda: len(rig.arm.received) > count)
    assert all(command is None for _, command in rig.arm.received[count:])
    rig.graph.remove(other)
    assert eventually(rig.moves)


@pytest.mark.parametrize("topic", [topics.SAFE_COMMAND, topics.POSE, topics.WRENCH, topics.JOINTS])
def test_a_second_source_of_what_the_arm_obeys_or_measures_is_named_and_the_arm_holds(rig, topic):
    first = rig.graph.add(lambda **options: RobotNode("first", **options))
    if topic is topics.JOINTS:
        first.publisher(topic)  # the arm of this test publishes none
    rogue = rig.graph.add(lambda **options: RobotNode("rogue", **options))
    rogue.publisher(topic)
    assert rig.holds(f"2 nodes publish on /{topic.name}: ")
    assert "rogue" in rig.arm.stopped[-1]
    rig.graph.remove(rogue)
    assert eventually(rig.moves)


def test_outside_the_box_the_arm_holds_and_comes_in_at_limited_lead_once_an_operator_releases_it(rig):
    rig.arm.pose = Pose(HERE.position + np.array([0.25, 0.0, 0.0]), DOWN)  # the box ends at 0.7
    assert rig.holds("the tcp is 50 mm outside the box")
    answer = rig.hand.call(rig.hand.release_client)
    assert answer.success
    assert "50 mm outside the box: it may move inwards only" in answer.message

    count = len(rig.arm.received)
    set_points = lambda: [c.T_base_target.position[0] for _, c in rig.arm.received[count:] if c is not None]  # noqa: E731
    assert eventually(lambda: rig.hand.go(offset=0.4) or len(set_points()) > 2)
    bound = SafetyNodeConfig().max_speed * SafetyNodeConfig().reaction_time
    assert all(0.75 - bound - 1e-9 <= x < 0.75 for x in set_points())
    rig.arm.pose = HERE
    assert eventually(lambda: rig.safety.health() == (b"\x00", "the arm may move"))
    assert eventually(rig.moves)


def test_a_command_of_the_future_is_refused_for_all_to_see_and_those_after_it_pass(rig):
    far = Command(rig.hand.wall.now() + 60 * NS_PER_S, 0.3, HERE)
    rig.hand.send(far)
    assert eventually(lambda: rig.arm.stopped and "in the future" in rig.arm.stopped[-1])
    assert eventually(rig.moves)
    assert eventually(lambda: rig.arm.stopped[-1] == "")


def test_somebody_who_comes_later_sees_why_the_arm_holds(rig):
    rig.hand.estop()
    assert rig.holds("topic estop")
    late, heard = rig.graph.add(lambda **options: RobotNode("late", **options)), []
    late.create_subscription(String, topics.STOPPED.name, lambda m: heard.append(m.data), qos.LATCHED)
    assert eventually(lambda: heard)
    assert "topic estop" in heard[-1]


def test_inactive_it_passes_nothing_and_says_why_and_active_again_only_what_is_new(rig):
    managed = ManagedClient(rig.hand, "/safety_node")
    assert managed.state() == "active"
    early = Command(rig.hand.wall.now(), 1.0, HERE)
    assert managed.set("deactivate")
    assert managed.state() == "inactive"
    assert rig.holds("safety_node is inactive: ros2 lifecycle set /safety_node activate")
    rig.hand.call(rig.hand.release_client)
    assert rig.holds("safety_node is inactive")  # a release is no activation
    count = len(rig.arm.received)
    assert managed.set("activate")
    rig.hand.send(early)
    time.sleep(0.2)
    assert all(command is None for _, command in rig.arm.received[count:]), "a transition moves nothing"
    assert eventually(rig.moves)


def test_deactivation_stops_the_arm_as_fast_as_a_stop(rig):
    managed = ManagedClient(rig.hand, "/safety_node")
    assert not managed.change(Transition(id=99))  # from here on the client is known
    assert eventually(rig.moves)
    asked = time.monotonic()
    assert managed.change(Transition(id=Transition.TRANSITION_DEACTIVATE))
    stops = lambda: [at for at, command in rig.arm.received if command is None and at > asked]  # noqa: E731
    assert eventually(stops)
    assert stops()[0] - asked < 1.0  # for a busy machine; benchmarks/soak.py measures it


def test_a_transition_that_the_state_has_not_is_refused_and_the_node_lives_on(rig):
    managed = ManagedClient(rig.hand, "/safety_node")
    assert not managed.change(Transition(id=Transition.TRANSITION_ACTIVATE))  # it is active
    assert not managed.change(Transition(id=99))
    assert not managed.change(Transition(label="go"))
    assert managed.state() == "active"
    assert eventually(rig.moves)
    for label, state in (("deactivate", "inactive"), ("cleanup", "unconfigured"), ("shutdown", "finalized")):
        assert managed.set(label)
        assert managed.state() == state
        assert rig.holds("safety_node is ")


def test_the_arm_holds_while_a_required_node_is_inactive(rig):
    rig.arm.sign = lambda: "arm is inactive: ros2 lifecycle set /arm activate"
    assert rig.holds("arm is inactive")
    del rig.arm.sign
    assert eventually(rig.moves)


def set_parameter(rig, name, value):
    """As `ros2 param set` does; returns whether it was taken, and the reason if not."""
    client = rig.hand.create_client(SetParameters, "/safety_node/set_parameters")
    assert client.wait_for_service(PATIENCE)
    request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
    future = client.call_async(request)
    assert eventually(future.done)
    (result,) = future.result().results
    return result.successful, result.reason


def test_limits_may_be_lowered_while_it_runs_and_never_raised(rig):
    assert set_parameter(rig, "max_force", 5.0) == (True, "")
    assert rig.safety.facts()[f"{LIMIT}max_force"] == 5.0
    taken, reason = set_parameter(rig, "max_force", 80.0)
    assert (taken, "max_force is 5 and may only be lowered" in reason) == (False, True)
    taken, reason = set_parameter(rig, "box_high", [2.0, 2.0, 2.0])
    assert (taken, "counts from the start" in reason) == (False, True)
    rig.arm.wrench = np.array([0.0, 0.0, 6.0, 0, 0, 0])
    assert rig.holds("contact force of 6 N, allowed are 5 N")
