"""The device of an operator, published as interventions: the device map is applied here, once.

Of several arms, a device leads one of them for good, or one at a time and changes over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from std_msgs.msg import String

from robot_rl.clock import Clock
from robot_rl.env.supervision import NEXT_ARM
from robot_rl.env.task import Taken, TaskSpec
from robot_rl.errors import GraphError
from robot_rl.geometry import Pose
from robot_rl.teleop.device import Device, DeviceError
from robot_rl.teleop.device_operator import DeviceOperator
from robot_rl.teleop.intervention import Intervention
from robot_rl.teleop.mapping import DeviceMap
from robot_rl.teleop.several_arms import SeveralArmsOperator
from ros_nodes.bridge.ros_supervision import RosSupervision
from ros_nodes.interface import convert, topics
from ros_nodes.interface.task_messages import Estimates, from_text
from ros_nodes.node.robot_node_base import RobotNode


class RosTeleoperation:
    """An operator whose actions go out on `intervention`, and whose requests go to the task and the actor.

    Args:
        node: Its publisher and subscription are used.
        spec: The task.
        hand: The device, and its map.
        supervision: Holds the arm when the device is lost, and receives the requests of its buttons.
        clock: Clock of smoothing and of the time at rest; None takes the machine's.
        arm: Which of several arms it leads; none: the first, until a button or a page chooses the next.
        other: The device of a second hand, which leads the arm after that one, and its map.
        on_chosen: Called with the name of the arm that is led from now on.

    Raises:
        DeviceError: if the map does not fit the device, or the task has no such arm.
    """

    def __init__(
        self,
        node: RobotNode,
        spec: TaskSpec,
        hand: tuple[Device, DeviceMap],
        supervision: RosSupervision,
        clock: Clock | None = None,
        *,
        arm: str = "",
        other: tuple[Device, DeviceMap] | None = None,
        on_chosen: Callable[[str], object] = lambda arm: None,
    ) -> None:
        if arm and arm not in spec.arms:
            arms = f"its arms are {', '.join(spec.arms)}" if spec.arms else "it has one, without a name"
            raise DeviceError(f"{spec.name} has no arm {arm}: {arms}")
        self._node, self._spec, self._supervision = node, spec, supervision
        self._operator: DeviceOperator | SeveralArmsOperator
        if spec.arms:
            own, shared = ({arm: [hand]}, []) if arm else ({}, [hand])
            self._operator = SeveralArmsOperator(
                own,
                shared,
                spec,
                supervision,
                beside=[] if other is None else [other],
                on_press=self._request,
                on_chosen=on_chosen,
                clock=clock,
            )
        else:
            self._operator = DeviceOperator([hand], spec, supervision, on_press=self._request, clock=clock)
        self._led = {one: own_spec for one, own_spec in spec.each.items() if not arm or one == arm}
        self._publishers = {one: node.publisher(topics.INTERVENTION.of_arm(one)) for one in self._led}
        self._episode: int | None = None
        self.last: Intervention | None = None
        """What was published last, of the arm that is led."""
        self._subscription = node.subscribe(topics.ESTIMATES, self._receive_estimates)

    @property
    def chosen(self) -> str | None:
        """Which of several arms a device that changes between them leads."""
        return self._operator.chosen if isinstance(self._operator, SeveralArmsOperator) else None

    def act(self, tools: Mapping[str, Pose]) -> Taken | None:
        """Read the device and map it; None while the policy is left in control.

        Args:
            tools: Pose of each arm's tool in its base frame.
        """
        if isinstance(self._operator, SeveralArmsOperator):
            return self._operator.act_at(tools)
        return self._operator.act_at(tools[""])

    def watch(self) -> None:
        """Poll the device where it may not lead, so that its loss is noticed."""
        self._operator.watch()

    def send(self, stamp: int, taken: Taken | None) -> None:
        """Publish what was read at `stamp` [ns]."""
        led = taken if isinstance(taken, Mapping) else {"": taken}
        self.last = None
        for arm, publisher in self._publishers.items():
            intervention = Intervention.of_action(stamp, led.get(arm), self._led[arm])
            publisher.publish(convert.intervention_message(intervention))
            if self.last is None or intervention.active:
                self.last = intervention

    def take(self, request: str) -> bool:
        """Do what is requested of who leads: to lead the next arm; return whether it is that."""
        if request != NEXT_ARM:
            return False
        if isinstance(self._operator, SeveralArmsOperator):
            self._operator.choose_next()
        else:
            self._node.problem(f"{self._spec.name} has one arm: no other one can be led")
        return True

    def close(self) -> None:
        """End the publishers and the subscription; the device stays open."""
        for publisher in self._publishers.values():
            self._node.destroy_publisher(publisher)
        self._node.destroy_subscription(self._subscription)

    def _receive_estimates(self, message: String) -> None:
        episode = from_text(Estimates, message.data).episode
        if episode != self._episode:
            self._episode = episode
            self._operator.reset(0, demonstrate=False)  # who demonstrates is decided where the episode is played

    def _request(self, role: str) -> None:
        """Pass on what a button requests; report where nobody receives it."""
        if self.take(role):
            return
        try:
            if role == "start":
                self._supervision.ready()
            elif role == "discard":
                self._supervision.cut("discarded by the operator")
            else:
                self._supervision.decide(role == "success")
        except GraphError as error:
            self._node.problem(f"button {role}: {error}")
