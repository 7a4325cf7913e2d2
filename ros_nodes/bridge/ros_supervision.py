"""Supervision of a robot over topics: holds are the safety node's latched stop, judgements go to the actor."""

from __future__ import annotations

from collections.abc import Callable

from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from robot_rl.env.robot_io import Command, RobotState
from robot_rl.env.supervision import ARM, RESET, Hold, Holding
from robot_rl.errors import CommandRefusedError, GraphError
from ros_nodes.bridge.ros_state import RosReadings
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import Judgement, to_message
from ros_nodes.node.robot_node_base import RobotNode

STOPPED = "safety"
"""Name of a hold of the safety node's own."""
SERVICES = (
    topics.RELEASE_SERVICE,
    topics.RECOVER_SERVICE,
    topics.READY_SERVICE,
    topics.SUCCESS_SERVICE,
    topics.FAILURE_SERVICE,
)


class WatchedArm:
    """A robot that is read and stopped, but not commanded: only the actor commands.

    Args:
        node: Its publisher is used.
        readings: Of the robot; None where nobody reads it.
    """

    def __init__(self, node: RobotNode, readings: RosReadings | None) -> None:
        self._readings = readings
        self._estop = node.publisher(topics.ESTOP)

    def read(self) -> RobotState:
        """Return the newest state.

        Raises:
            StaleStateError: if it is too old.
            GraphError: if this node has no readings of the robot.
        """
        if self._readings is None:
            raise GraphError("this node does not read the robot")
        return self._readings.read()

    def command(self, command: Command) -> None:
        """Refuse the command.

        Raises:
            CommandRefusedError: always.
        """
        raise CommandRefusedError(f"only the actor commands: {command}")

    def stop(self) -> None:
        """Latch the stop of the safety node."""
        self._estop.publish(Bool(data=True))


class RosSupervision(Holding):
    """Holds the arm by the safety node; an operator releases it when nothing else holds it.

    Args:
        node: Its publishers, subscriptions and clients are used.
        readings: Of the robot; None where nobody reads it.
        report: Called with a text about what did not work.
    """

    def __init__(self, node: RobotNode, readings: RosReadings | None, report: Callable[[str], None]) -> None:
        super().__init__(WatchedArm(node, readings))
        self._node, self._report = node, report
        self._stopped = ""
        self._services = {name: node.create_client(Trigger, name) for name, _ in SERVICES}
        self._judgements = node.publisher(topics.JUDGEMENT)
        node.subscribe(topics.STOPPED, self._receive_stopped)
        node.subscribe(topics.QUESTION, self._receive_question)

    @property
    def stopped(self) -> bool:
        """Whether the safety node has stopped the arm."""
        return bool(self._stopped)

    @property
    def _arm_fault(self) -> bool:
        return self._stopped.startswith(topics.ARM_FAULT)

    @property
    def judges(self) -> bool:
        """Whether an actor receives judgements."""
        return bool(self._judgements.get_subscription_count())

    @property
    def holds(self) -> list[Hold]:
        """Everything that holds the arm now, the safety node's own reason last; a fault of the arm is always named."""
        own = super().holds
        if self._arm_fault:
            return [*own, Hold(ARM, self._stopped)]
        return own or ([Hold(STOPPED, self._stopped)] if self._stopped else [])

    def hold(self, name: str, reason: str) -> None:
        """Latch the stop of the safety node; the reason is recorded with the running episode."""
        first = not super().holds
        super().hold(name, reason)
        if first and self.judges:
            self.cut(reason)

    def release(self, name: str) -> None:
        """Remove one hold; when none is left, request the release of the safety node's stop.

        A device that is back removes its own hold only: the operator decides when the arm moves again. Releasing the
        hold of the arm is the consent to recover it.
        """
        if name == ARM:
            if self._arm_fault:
                self.call(topics.recover_service(self._stopped))
            return
        super().release(name)
        if self._arm_fault:
            return
        if not name.startswith("device") and not super().holds and self._stopped:
            self.call(topics.RELEASE_SERVICE[0])

    def insist(self) -> None:
        """Request the stop again while a hold is not in effect: the safety node may have started later."""
        if super().holds and not self._stopped:
            self.io.stop()

    def ready(self) -> None:
        """Report that the scene is ready: the episode may begin."""
        self.call(topics.READY_SERVICE[0])

    def mark(self, success: bool) -> None:
        """End the running episode as a success or a failure, whatever the task finds.

        Raises:
            GraphError: if nobody plays episodes.
        """
        self._judge(Judgement(success))

    def decide(self, success: bool) -> None:
        """End the running episode as a success or a failure: by the task's service where it has one, as on a real arm.

        Raises:
            GraphError: if there is no such service, and no actor.
        """
        name, _ = topics.SUCCESS_SERVICE if success else topics.FAILURE_SERVICE
        if self._services[name].service_is_ready():
            self.call(name)
        else:
            self.mark(success)

    def cut(self, reason: str) -> None:
        """End the running episode without a judgement.

        Raises:
            GraphError: if nobody plays episodes.
        """
        self._judge(Judgement(None, reason=reason))

    def reset(self) -> None:
        """End the running episode, so that the operator can reset the scene.

        Raises:
            GraphError: if nobody plays episodes.
        """
        self.cut(RESET)

    def label(self, episode_id: str, success: bool) -> None:
        """Label a recorded episode; if no actor runs now, the next one of the run finds the label in the store."""
        if self.judges:
            self._judge(Judgement(success, episode_id))

    def call(self, service: str) -> None:
        """Call a service without waiting for its answer; a refusal is reported.

        Raises:
            GraphError: if no node offers it.
        """
        client = self._services[service]
        if not client.service_is_ready():
            raise GraphError(f"no node offers {client.srv_name}")
        client.call_async(Trigger.Request()).add_done_callback(self._answered)

    def _judge(self, judgement: Judgement) -> None:
        if not self.judges:
            raise GraphError(f"no node listens on {self._judgements.topic_name}; is an actor running?")
        self._judgements.publish(to_message(judgement))

    def _receive_question(self, message: String) -> None:
        self.question = message.data

    def _answered(self, future: object) -> None:
        answer = future.result()  # type: ignore[attr-defined]
        if not answer.success:
            self._report(answer.message)

    def _receive_stopped(self, message: String) -> None:
        self._stopped = message.data
        if self._arm_fault and (service := topics.recover_service(message.data)) not in self._services:
            self._services[service] = self._node.create_client(Trigger, service)  # of one of several arms
