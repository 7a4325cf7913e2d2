"""An operator in another process, over topics: judgements and stops come in, questions and calls go out."""

from __future__ import annotations

from std_msgs.msg import String

from robot_rl.env.command_limits import LATCHED
from robot_rl.errors import LinkError
from robot_rl.hil.remote_operator import RemoteOperator
from ros_nodes.interface import topics
from ros_nodes.interface.task_messages import Judgement, from_text
from ros_nodes.node.robot_node_base import RobotNode

PERIOD = 0.1
"""Time between two checks for a question, and for a subscriber to it [s]."""


class RosOperator:
    """Stands between topics and the person of a job.

    Args:
        node: Whose publisher and subscriptions.
        person: Of the job.
    """

    def __init__(self, node: RobotNode, person: RemoteOperator) -> None:
        self._node, self._person = node, person
        self._asked: str | None = None  # nothing yet: what a job that was killed asked last is still shown
        self._called: str | None = None
        self._question, self._call = node.publisher(topics.QUESTION), node.publisher(topics.CALL)
        node.subscribe(topics.JUDGEMENT, self._take_judgement)
        node.subscribe(topics.STOPPED, self._take_stopped)
        node.timer(PERIOD, self._ask)

    def _ask(self) -> None:
        self._person.set_listening(self._question.get_subscription_count() > 0)
        if (question := self._person.question) != self._asked:
            self._asked = question
            self._question.publish(String(data=question))
        if (called := self._person.called) != self._called:
            self._called = called
            self._call.publish(String(data=called))

    def _take_judgement(self, message: String) -> None:
        report = from_text(Judgement, message.data)
        if report.episode is None:
            self._person.end_episode(report.success, report.reason)
        elif report.success is None:
            raise LinkError(f"a Judgement of {report.episode} without success: it can be cut no more")
        else:
            self._person.labels.add(report.episode, report.success)

    def _take_stopped(self, message: String) -> None:
        """Hold the job while only a person can end the stop, and say who, since this may last."""
        service = _consent(message.data)
        self._person.set_stop(message.data if service else "")
        if service:
            self._node.get_logger().warning(
                f"waits for a person: {message.data}. Consent by Resume in the console (--console :8480), or by the "
                f"service {self._node.resolve_service_name(service)}"
            )


def _consent(stopped: str) -> str | None:
    """Return the service that is the consent to end a stop; None if it needs none."""
    if stopped.startswith(LATCHED):
        return topics.RELEASE_SERVICE[0]
    return topics.recover_service(stopped) if stopped.startswith(topics.ARM_FAULT) else None
