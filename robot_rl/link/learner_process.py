"""The learner's process: `python -m robot_rl.link.learner_process FD`, where FD is a socket inherited from the actor.

It learns from each step before it reads the next, so that it makes the same updates as a learner in the process of the
actor for the same steps. It ends on the message `Stop`, and when the actor is gone.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from collections.abc import Sequence

import numpy as np
import torch

from robot_rl.data.replay.percept import Percept
from robot_rl.errors import LinkError, RobotRLError
from robot_rl.learn.learner import Learner
from robot_rl.link.handshake import Agreement
from robot_rl.link.messages import (
    ActorHello,
    Demonstration,
    EpisodeLabel,
    Failure,
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
from robot_rl.link.socket import Connection, PeerGoneError
from robot_rl.link.state_transfer import CheckpointAssembler, cut

PUBLISH_INTERVAL = 5
"""Learner calls between two sets of parameters, 0.3 MB each; sending them takes a twentieth of one call of 8 ms."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve the actor at the other end of the socket; return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they reach the actor too, who saves and then ends this process
    (descriptor,) = sys.argv[1:] if argv is None else argv
    torch.set_num_threads(1)
    connection = Connection(socket.socket(fileno=int(descriptor)), "actor")
    try:
        LearnerServer(connection).run()
    except PeerGoneError:
        return 1  # nobody is left to receive the error
    except RobotRLError as error:
        with contextlib.suppress(PeerGoneError):
            connection.send(Failure(error=type(error).__name__, text=str(error)))
        return 1
    finally:
        connection.close()
    return 0


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
        self._learner = Learner(*self._agreement)
        self._published = 0
        self._report_ready()

    def run(self) -> None:
        """Serve until the actor sends `Stop`.

        Raises:
            RobotRLError: any error that the actor has to receive.
        """
        while not isinstance(message := self._connection.receive(), Stop):
            self._handle(message)

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
                self._learner.begin(Percept(message.row, message.images, message.potential), message.episode_id)
            case StepTaken():
                self._learn_from(message)
            case Pretrain():
                self._connection.send(Logs(values=self._learner.pretrain(message.updates)))
                self._publish()
                self._report_progress()
            case EpisodeLabel():
                self._learner.label_episode(message.episode_id, message.success, message.since)
            case Demonstration():
                self._remember(message)
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
        seen = Percept(message.row, message.images, message.potential)
        taken = message.action, message.reward, message.terminated, message.truncated, message.source
        learner.append(*taken, seen, undecided=message.undecided)
        logs = learner.catch_up()
        if logs is not None:
            self._connection.send(Logs(values=logs))
        calls = (learner.updates - self._published) // self._agreement.config.update_to_data
        if calls >= PUBLISH_INTERVAL:
            self._publish()
        self._report_progress()

    def _remember(self, message: Demonstration) -> None:
        rows = message.rows
        columns = (message.action, message.reward, message.terminated, message.truncated, message.source)
        shapes = [rows.shape, *(column.shape for column in columns)]
        if {shape[:1] for shape in shapes[1:]} != {(len(rows) - 1 if rows.ndim else 0,)}:
            raise LinkError(f"a demonstration has {shapes} as shapes of its columns")
        images = message.images
        if images is not None and len(images) != len(rows):
            raise LinkError(f"a demonstration has {len(rows)} states and images of {len(images)} observations")
        potential = np.zeros(len(rows), np.float32) if message.potential is None else message.potential
        if potential.shape != rows.shape[:1]:
            raise LinkError(f"a demonstration has {len(rows)} states and potentials of shape {potential.shape}")
        percepts = [
            Percept(row, None if images is None else images[t], float(potential[t])) for t, row in enumerate(rows)
        ]
        demos = self._learner.demos
        demos.begin(percepts[0])
        for t, (action, reward, terminated, truncated, source) in enumerate(zip(*columns, strict=True)):
            demos.append(action, float(reward), bool(terminated), bool(truncated), int(source), percepts[t + 1])

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
            )
        )


if __name__ == "__main__":
    sys.exit(main())
