"""One device log gives the same actions in one process and over topics, bit for bit."""

import queue
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from fakes import ARMS_SPEC, SPEC
from geometry_msgs.msg import PoseStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Joy, JoyFeedback
from std_msgs.msg import String
from waiting import PATIENCE, eventually

from robot_rl.clock import NS_PER_S, FakeClock
from robot_rl.env.robot_io import RobotState
from robot_rl.env.supervision import Supervision
from robot_rl.geometry import Pose, quat_from_rotvec
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.intervention import Intervention, InterventionOperator
from robot_rl.teleop.mapping import default_map
from robot_rl.teleop.pushed import PushedDevice
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import Estimates, TaskHead, to_message
from ros_nodes.node.robot_node_base import RobotNode
from ros_nodes.nodes.teleop_node import TeleopNode

START = 1_700_000_000 * NS_PER_S
SPEC6 = replace(SPEC, action_axes=("x", "y", "z", "roll", "pitch", "yaw"), gripper=True)
AXES, BUTTONS = [f"axis_{n}" for n in range(6)], ["button_0", "button_1"]

counts = st.integers(-350, 350)  # of a SpaceMouse
readings = st.tuples(
    st.integers(1, 400),  # time since the last reading [ms]
    st.lists(counts, min_size=6, max_size=6),
    st.booleans(),
    st.tuples(*[st.floats(-1.5, 1.5)] * 3),  # how the tool is turned then [rad]
)
logs = st.lists(readings, min_size=1, max_size=30)


def timed(log):
    """Stamp [ns], axes, buttons and pose of the tool, one by one; the values of a SpaceMouse."""
    stamp = START
    for elapsed, axes, gripper, turn in log:
        stamp += elapsed * NS_PER_S // 1000
        pose = Pose(np.array([0.5, 0.0, 0.2]), quat_from_rotvec(np.array(turn)))
        yield stamp, [count / 350.0 for count in axes], (gripper, False), pose


def state(pose):
    return RobotState(0, pose, *(np.zeros(6) for _ in range(4)))


class Local:
    """The operator in the process of the control loop."""

    def __init__(self, spec):
        from fakes import fake_workcell

        self.clock = FakeClock(START)
        self.device = PushedDevice("spacenav", AXES, BUTTONS, clock=self.clock)
        hand = (self.device, default_map("spacenav"))
        self.operator = DeviceOperator([hand], spec, Supervision(fake_workcell(spec)), clock=self.clock)
        self.operator.reset(0, demonstrate=False)

    def act(self, stamp, axes, buttons, pose):
        self.clock.sleep_until(stamp)
        self.device.push(axes, buttons)
        return self.operator.act(state(pose), Pose.identity())


def crossed(message):
    return deserialize_message(serialize_message(message), type(message))


def same(one, other):
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@settings(deadline=None)
@given(logs, st.sampled_from([SPEC, SPEC6]))
def test_a_log_gives_the_same_actions_in_one_process_and_through_messages(log, spec):
    local, far = Local(spec), Local(spec)
    newest, clock = [], FakeClock(START)
    operator = InterventionOperator(spec, lambda: newest[-1], clock, 0.2, lambda seed, demonstrate: None)
    for stamp, axes, buttons, pose in timed(log):
        joy = crossed(convert.joy_message(stamp, np.array(axes), buttons))
        measured = convert.pose_of(crossed(convert.pose_message(stamp, pose)).pose)
        action = far.act(
            convert.stamp_of(joy.header.stamp), list(joy.axes), [bool(button) for button in joy.buttons], measured
        )
        sent = convert.intervention_message(Intervention.of_action(stamp, action, spec))
        newest.append(convert.intervention_of(crossed(sent)))
        clock.sleep_until(stamp)
        assert same(local.act(stamp, axes, buttons, pose), operator.act(state(pose), Pose.identity()))


@pytest.mark.parametrize("spec", [SPEC, SPEC6], ids=["axes of the task", "six axes and gripper"])
def test_a_log_gives_the_same_actions_through_a_real_graph(graph, spec):
    random = np.random.default_rng(7)
    log = [
        (int(random.integers(5, 300)), random.integers(-350, 351, 6) * (random.random() < 0.8), n % 7 == 3, turn)
        for n, turn in enumerate(random.uniform(-1.5, 1.5, (60, 3)))
    ]
    node = graph.add(lambda **options: RobotNode("device", **options))
    answers = queue.Queue()
    node.subscribe(topics.INTERVENTION, lambda message: answers.put(convert.intervention_of(message)))
    joy, pose_out = node.publisher(topics.JOY), node.publisher(topics.POSE)
    head, estimates = node.publisher(topics.HEAD), node.publisher(topics.ESTIMATES)
    teleop = graph.add(TeleopNode, map="spacenav")
    head.publish(to_message(TaskHead(spec, {}, "human", False, (64, 64), (), None)))
    arrived = {}
    lock = threading.Lock()

    def note(kind):
        def receive(message):
            with lock:
                arrived[kind] = convert.stamp_of(message.header.stamp)

        return receive

    teleop.subscribe(topics.POSE, note("pose"))
    assert eventually(lambda: all(p.get_subscription_count() >= n for p, n in ((joy, 1), (pose_out, 2), (head, 1))))
    assert eventually(lambda: teleop.facts() == {"device": "silent"})

    def answer(stamp, axes, buttons, pose):
        """Send pose and reading until both have arrived; a reading that comes twice is answered twice alike."""
        pose_out.publish(convert.pose_message(stamp, pose))
        assert eventually(lambda: arrived.get("pose") == stamp)
        joy.publish(convert.joy_message(stamp, np.array(axes), buttons))
        while (one := answers.get(timeout=PATIENCE)).stamp != stamp:
            pass
        return one

    local = Local(spec)
    operator_clock, newest = FakeClock(START), [None]
    operator = InterventionOperator(spec, lambda: newest[0], operator_clock, 0.2, lambda seed, demonstrate: None)
    estimates.publish(to_message(Estimates(1, START, {})))
    led = 0
    for stamp, axes, buttons, pose in timed(log):
        newest[0] = answer(stamp, axes, buttons, pose)
        operator_clock.sleep_until(stamp)
        action = operator.act(state(pose), Pose.identity())
        assert same(local.act(stamp, axes, buttons, pose), action)
        led += action is not None
    assert led > 30


class TwoArms:
    """Two arms that stand, a SpaceMouse, and what is wanted of each arm."""

    def __init__(self, graph, **parameters):
        self.node = graph.add(lambda **options: RobotNode("device", **options))
        self.joy, head = self.node.publisher(topics.JOY), self.node.publisher(topics.HEAD)
        self.newest, self.stamp = {}, START
        for arm in ("left", "right"):
            self.node.subscribe(topics.INTERVENTION.of_arm(arm), self._taker(arm))
        self.poses = [self.node.publisher(topics.POSE.of_arm(arm)) for arm in ("left", "right")]
        self.teleop = graph.add(TeleopNode, map="spacenav", **parameters)
        head.publish(to_message(TaskHead(ARMS_SPEC, {}, "human", False, (64, 64), (), None)))

    def _taker(self, arm):
        return lambda message: self.newest.__setitem__(arm, convert.intervention_of(message))

    def leads(self, *buttons):
        """Which arms the device leads while it is pushed."""
        self.stamp += NS_PER_S // 10
        for pose in self.poses:
            pose.publish(convert.pose_message(self.stamp, Pose.identity()))
        self.joy.publish(convert.joy_message(self.stamp, np.array([0.9, 0, 0, 0, 0, 0]), buttons or (0, 0)))
        return {arm for arm, one in self.newest.items() if one.active}


def test_a_device_leads_one_of_two_arms_and_the_next_one_by_a_button(graph):
    cell = TwoArms(graph)
    assert eventually(lambda: cell.leads() == {"left"})
    assert cell.newest["right"].stamp == cell.newest["left"].stamp, "that it is not led is said, too"
    assert eventually(lambda: cell.leads(0, 1) == {"right"} or cell.leads() == {"right"})


def test_a_device_of_one_arm_says_nothing_of_the_other_one(graph):
    cell = TwoArms(graph, arm_name="right")
    assert eventually(lambda: cell.leads() == {"right"})
    assert cell.newest.keys() == {"right"}


def test_a_device_for_an_arm_that_the_task_has_not_is_named(graph):
    cell = TwoArms(graph, arm_name="middle")
    wanted = "fake_arms has no arm middle: its arms are left, right"
    assert eventually(lambda: cell.leads() or any(wanted in text for text in cell.teleop.problems))


def test_a_reading_without_a_stamp_does_not_lead(graph):
    node = graph.add(lambda **options: RobotNode("device", **options))
    joy, pose, head = node.publisher(topics.JOY), node.publisher(topics.POSE), node.publisher(topics.HEAD)
    teleop = graph.add(TeleopNode)
    head.publish(to_message(TaskHead(SPEC, {}, "human", False, (64, 64), (), None)))
    pose.publish(PoseStamped())
    assert eventually(lambda: joy.get_subscription_count() == 1)
    joy.publish(Joy(axes=[1.0] * 8, buttons=[0] * 11))
    assert eventually(lambda: any("no stamp" in text for text in teleop.problems))
    assert teleop.facts() == {"device": "silent"}


def test_a_map_that_does_not_fit_the_device_is_named(graph):
    node = graph.add(lambda **options: RobotNode("device", **options))
    joy, pose, head = node.publisher(topics.JOY), node.publisher(topics.POSE), node.publisher(topics.HEAD)
    teleop = graph.add(TeleopNode)
    head.publish(to_message(TaskHead(SPEC, {}, "human", False, (64, 64), (), None)))
    assert eventually(lambda: joy.get_subscription_count() == 1 and pose.get_subscription_count() == 1)

    def refused():
        pose.publish(convert.pose_message(START, Pose.identity()))
        joy.publish(convert.joy_message(START, np.zeros(2), (0, 0)))
        return any("the map names axis axis_3, axis_4; valid: axis_0, axis_1" in text for text in teleop.problems)

    assert eventually(refused)


@pytest.mark.parametrize(
    ("parameters", "cure"),
    [
        ({"axes": [1, 0, 2, 3, 4, 5]}, "axes: no parameter of teleop_node any more; set map instead"),
        ({"deadband": 0.1, "close_button": 3}, r"deadband: .* set map .*\nclose_button: .* set map \(its button"),
        ({"map": "joystick"}, "no device map is called 'joystick'.*valid: browser, gamepad, joy"),
    ],
)
def test_what_is_no_parameter_any_more_is_refused_with_what_replaces_it(graph, parameters, cure):
    with pytest.raises(Exception, match=cure):
        graph.add(TeleopNode, **parameters)


def test_a_gamepad_rumbles_when_the_policy_begins_to_need_help_and_not_when_it_ends(graph):
    node = graph.add(lambda **options: RobotNode("caller", **options))
    felt = []
    node.subscribe(topics.JOY_FEEDBACK, felt.append)
    call = node.publisher(topics.CALL)
    graph.add(TeleopNode)
    assert eventually(lambda: call.get_subscription_count() == 1)
    for text, count in (("success is less likely", 1), ("", 1), ("the time is nearly over", 2)):
        call.publish(String(data=text))  # the newest one replaces those that were not taken yet
        assert eventually(lambda count=count: len(felt) >= count)
        time.sleep(0.2)
    assert [(one.type, one.id, one.intensity) for one in felt] == 2 * [(JoyFeedback.TYPE_RUMBLE, 0, 1.0)]
