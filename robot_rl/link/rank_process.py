"""A learner that learns along with a first one: `python -m robot_rl.link.rank_process FD`, a socket inherited from it.

It receives what that one receives, in the same order, and makes the same updates with its part of the episodes and of
every minibatch. It sends nothing but its part of the memory, for a checkpoint. It ends when the other one does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from robot_rl.errors import LinkError
from robot_rl.learn.learner import Learner
from robot_rl.learn.parallel.ranks import DistributedRanks
from robot_rl.link.handshake import Agreement
from robot_rl.link.learner_main import serve_starter
from robot_rl.link.messages import (
    Demonstration,
    EpisodeLabel,
    EpisodeRewards,
    LearnerReady,
    Message,
    Pretrain,
    RankHello,
    Start,
    StatePart,
    StateRequest,
    StepTaken,
)
from robot_rl.link.socket import Connection
from robot_rl.link.state_transfer import CheckpointAssembler, cut


def main(argv: Sequence[str] | None = None) -> int:
    """Learn along with the process at the other end of the socket; return the exit code."""
    return serve_starter(argv, "first learner", _serve, when_gone=0)


def _serve(connection: Connection) -> None:
    """Learn until the other one is gone, which raises `PeerGoneError`."""
    hello = connection.receive()
    if not isinstance(hello, RankHello):
        raise LinkError(f"the first message is {type(hello).__name__}, expected RankHello")
    agreement = Agreement.of(hello)
    connection.send(LearnerReady(fingerprint=agreement.fingerprint))
    config = agreement.config
    ranks = DistributedRanks(hello.rank, config.learners, Path(hello.meeting), config.device)
    learner, parts = Learner(*agreement, hello.robots, ranks), CheckpointAssembler()
    while True:
        _handle(connection, learner, parts, connection.receive())


def _handle(connection: Connection, learner: Learner, parts: CheckpointAssembler, message: Message) -> None:
    match message:
        case Start():
            learner.begin(message.percept, message.episode_id)
        case StepTaken():
            learner.append(message.step, message.percept)
            learner.catch_up()
        case Pretrain():
            learner.pretrain(message.updates)
        case Demonstration():
            learner.demonstrate(message.percepts, message.steps, message.episode_id)
        case EpisodeLabel():
            learner.label_episode(message.episode_id, message.success, message.since)
        case EpisodeRewards():
            learner.reward_episode(message.episode_id, message.closeness)
        case StateRequest():
            for part in cut(learner.memories.state_dict()):
                connection.send(part)
        case StatePart():
            if (state := parts.add(message)) is not None:
                learner.load_state_dict(state)
        case _:
            raise LinkError(f"a learner that learns along does not accept the message {type(message).__name__}")


if __name__ == "__main__":
    sys.exit(main())
