"""What a person says to nodes elsewhere: holds are the safety node's latched stop, judgements go to the actor.

It knows names of topics and services; who speaks, and to what end, it does not know.
"""

from __future__ import annotations

from collections.abc import Callable

from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from robot_rl.env.robot_io import Command
from robot_rl.env.supervision import Hold, Holding
from robot_rl.errors import CommandRefusedError, GraphError
from ros_nodes.bridge.ros_state import RosReadings
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import Judgement, to_message
from ros_nodes.node.robot_node_base import RobotNode

STOPPED = "safety"
"""Name of a hold of the safety node's own."""


class WatchedArm:
    """A robot that is read, and stopped, but not commanded: that is the actor's part.

    Args:
        node: Whose publisher.
        readings: Of the robot.
    """

    def __init__(self, node: RobotNode, readings: RosReadings) -> None:
        self.read = readings.read
        self._estop = node.publisher(topics.ESTOP)

    def command(self, command: Command) -> None:
        """Refused.

        Raises:
            CommandRefusedError: always.
        """
        raise CommandRefusedError(f"only the actor commands, not the console: {command}")

    def stop(self) -> None:
        """Latches the stop of the safety node."""
        self._estop.publish(Bool(data=True))


class RosSupervision(Holding):
    """Holds the arm by the safety node, which lets go when a person says so and nobody else holds.

    Args:
        node: Whose subscription and clients.
        readings: Of the robot.
        say: Told what did not work.
    """

    def __init__(self, node: RobotNode, readings: RosReadings, say: Callable[[str], None]) -> None:
        super().__init__(WatchedArm(node, readings))
        self._say = say
        self._stopped = ""
        self._services = {
            name: node.create_client(Trigger, name) for name, _ in (topics.RELEASE_SERVICE, topics.READY_SERVICE)
        }
        self._judgements = node.publisher(topics.JUDGEMENT)
        node.subscribe(topics.STOPPED, self._take_stopped)
        node.subscribe(topics.QUESTION, self._take_question)

    @property
    def stopped(self) -> bool:
        """Whether the safety node lets nothing through."""
        return bool(self._stopped)

    @property
    def judges(self) -> bool:
        """Whether there is somebody who takes a person's judgement."""
        return bool(self._judgements.get_subscription_count())

    @property
    def holds(self) -> list[Hold]:
        """Everything that holds the arm now, the safety node's own reason last."""
        own = super().holds
        return own or ([Hold(STOPPED, self._stopped)] if self._stopped else [])

    def hold(self, name: str, reason: str) -> None:
        """Latches the stop of the safety node; the recording of the running episode says why."""
        first = not super().holds
        super().hold(name, reason)
        if first and self.judges:
            self.cut(reason)

    def release(self, name: str) -> None:
        """Takes one hold away; when none is left, the safety node is asked to let go.

        A device that is back lets go of its own hold only: that the arm moves again takes a person's word.
        """
        super().release(name)
        if not name.startswith("device") and not super().holds and self._stopped:
            self.call(topics.RELEASE_SERVICE[0])

    def insist(self) -> None:
        """Asks for the stop again while it is wanted and not there: whoever stops the arm may have come later."""
        if super().holds and not self._stopped:
            self.io.stop()

    def ready(self) -> None:
        """The scene is ready: the episode may begin."""
        self.call(topics.READY_SERVICE[0])

    def mark(self, success: bool) -> None:
        """Ends the running episode as a success or a failure, whatever the task says.

        Raises:
            GraphError: if nobody plays episodes.
        """
        self._judge(Judgement(success))

    def cut(self, reason: str) -> None:
        """Ends the running episode without a judgement.

        Raises:
            GraphError: if nobody plays episodes.
        """
        self._judge(Judgement(None, reason=reason))

    def label(self, episode_id: str, success: bool) -> None:
        """What a recorded episode was; if nobody learns now, whoever goes on with the run finds it in the store."""
        if self.judges:
            self._judge(Judgement(success, episode_id))

    def call(self, service: str) -> None:
        """Asks for a service, without waiting for the answer; what does not work is said.

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

    def _take_question(self, message: String) -> None:
        self.question = message.data

    def _answered(self, future: object) -> None:
        answer = future.result()  # type: ignore[attr-defined]
        if not answer.success:
            self._say(answer.message)

    def _take_stopped(self, message: String) -> None:
        self._stopped = message.data
