"""The learner's process: `python -m robot_rl.link.learner_process FD`, where FD is a socket inherited from the actor.

It learns from each step before it reads the next, so that it makes the same updates as a learner in the process of the
actor for the same steps. It ends on the message `Stop`, and when the actor is gone.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from robot_rl.errors import LinkError
from robot_rl.link.handshake import Agreement
from robot_rl.link.leading_learner import open_learner
from robot_rl.link.learner_main import serve_starter
from robot_rl.link.messages import (
    ActorHello,
    Demonstration,
    EpisodeLabel,
    EpisodeRewards,
    Hindsight,
    LearnerReady,
    Logs,
    Message,
    Parameters,
    Pretrain,
    Start,
    StatePart,
    StateRequest,
    StepTaken,
    Stop,
    UpdateProgress,
)
from robot_rl.link.peer import MessageLink
from robot_rl.link.state_transfer import CheckpointAssembler, cut

PUBLISH_INTERVAL = 5
"""Learner calls between two sets of parameters, 0.3 MB each; sending them takes a twentieth of one call of 8 ms."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the actor at the other end of the socket; return the exit code."""
    return serve_starter(argv, "actor", lambda connection: LearnerServer(connection).run(), when_gone=1)


class LearnerServer:
    """A learner that receives steps and sends parameters, by messages.

    Args:
        connection: To the actor.

    Raises:
        RobotRLError: any error that the actor has to receive.
    """

    def __init__(self, connection: MessageLink) -> None:
        self._connection = connection
        self._parts = CheckpointAssembler()
        hello = connection.receive()
        if not isinstance(hello, ActorHello):
            raise LinkError(f"the first message is {type(hello).__name__}, expected ActorHello")
        self._agreement = Agreement.of(hello)
        self._learner = open_learner(self._agreement)
        self._published, self._episode_id = 0, ""
        with contextlib.ExitStack() as on_error:
            on_error.callback(self._learner.close)
            self._report_ready()
            on_error.pop_all()

    def run(self) -> None:
        """Serve until the actor sends `Stop`.

        Raises:
            RobotRLError: any error that the actor has to receive.
        """
        try:
            while not isinstance(message := self._connection.receive(), Stop):
                self._handle(message)
        finally:
            self._learner.close()

    def facts(self) -> dict[str, float]:
        """Return the counters of the learner, for monitoring."""
        learner = self._learner
        return {
            "env_steps": learner.env_steps,
            "updates": learner.updates,
            "update_to_data": learner.update_to_data,
            "demonstration_steps": len(learner.demos),
        }

    def _handle(self, message: Message) -> None:
        match message:
            case Start():
                self._learner.begin(message.percept, message.episode_id)
                self._episode_id = message.episode_id
                self._report_progress()  # the value that was reported last is that of another episode's end
            case StepTaken():
                self._learn_from(message)
            case Pretrain():
                self._connection.send(Logs(values=self._learner.pretrain(message.updates)))
                self._publish()
                self._report_progress()
            case EpisodeLabel():
                self._learner.label_episode(message.episode_id, message.success, message.since)
            case EpisodeRewards():
                self._learner.reward_episode(message.episode_id, message.closeness)
            case Hindsight():
                self._learner.relabelled(message.rows)
            case Demonstration():
                self._learner.demonstrate(message.percepts, message.steps, message.episode_id)
            case StateRequest():
                self._publish()
                for part in cut(self._learner.state_dict()):
                    self._connection.send(part)
            case StatePart():
                if (state := self._parts.add(message)) is not None:
                    self._learner.load_state_dict(state)
                    self._report_ready()
            case _:
                raise LinkError(f"a learner does not accept the message {type(message).__name__}")

    def _learn_from(self, message: StepTaken) -> None:
        """Add the step, make the updates that are due for it, and report the counters."""
        learner = self._learner
        if message.number != learner.env_steps:
            raise LinkError(f"step {message.number} arrived after {learner.env_steps} steps; one is lost or came twice")
        learner.append(message.step, message.percept)
        logs = learner.catch_up()
        if logs is not None:
            self._connection.send(Logs(values=logs))
        calls = (learner.updates - self._published) // learner.minibatches
        if calls >= PUBLISH_INTERVAL:
            self._publish()
        self._report_progress()

    def _report_ready(self) -> None:
        self._publish()
        self._report_progress()
        self._connection.send(LearnerReady(fingerprint=self._agreement.fingerprint))

    def _publish(self) -> None:
        """Send the newest parameters."""
        arrays = {name: value.numpy() for name, value in self._learner.policy.policy_state().items()}
        self._published = self._learner.updates
        self._connection.send(Parameters(updates=self._learner.updates, arrays=arrays))

    def _report_progress(self) -> None:
        learner = self._learner
        self._connection.send(
            UpdateProgress(
                env_steps=learner.env_steps,
                updates=learner.updates,
                update_to_data=learner.update_to_data,
                offline_updates=learner.offline_updates,
                value=learner.value,
                episode_id=self._episode_id,
            )
        )


if __name__ == "__main__":
    sys.exit(main())
