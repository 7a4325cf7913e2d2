"""A person elsewhere, over topics: what they judge and stop comes in, what they are asked goes out.

It knows the topics; what a word leads to, `PersonElsewhere` and `Supervision` know.
"""

from __future__ import annotations

from std_msgs.msg import String

from robot_rl.env.command_guard import LATCHED
from robot_rl.errors import LinkError
from robot_rl.person_elsewhere import PersonElsewhere
from ros_nodes import topics
from ros_nodes.node import RobotNode
from ros_nodes.task_messages import Judgement, from_text

PERIOD = 0.1
"""Time between two looks at whether there is something to ask, and somebody to be asked [s]."""


class RosPerson:
    """Stands between topics and the person of a job.

    Args:
        node: Whose publisher and subscriptions.
        person: Of the job.
    """

    def __init__(self, node: RobotNode, person: PersonElsewhere) -> None:
        self._person, self._asked = person, ""
        self._question = node.publisher(topics.QUESTION)
        node.subscribe(topics.JUDGEMENT, self._take_judgement)
        node.subscribe(topics.STOPPED, self._take_stopped)
        node.timer(PERIOD, self._ask)

    def _ask(self) -> None:
        self._person.heard(self._question.get_subscription_count() > 0)
        if (question := self._person.question) != self._asked:
            self._asked = question
            self._question.publish(String(data=question))

    def _take_judgement(self, message: String) -> None:
        said = from_text(Judgement, message.data)
        if said.episode is None:
            self._person.say(said.success, said.reason)
        elif said.success is None:
            raise LinkError(f"a Judgement of {said.episode} without success: it can be cut no more")
        else:
            self._person.hindsight.say(said.episode, said.success)

    def _take_stopped(self, message: String) -> None:
        self._person.stopped(message.data if message.data.startswith(LATCHED) else "")
