"""The first of several learners that learn as one: it starts the others, and passes on to them what it receives.

Files, checkpoints, logs and parameters for actors are its own. A checkpoint holds the whole, so that a run can be
continued by any number of learners.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from robot_rl.data.replay.memories import Memories
from robot_rl.data.replay.percept import Percept
from robot_rl.data.replay.transition import Transition
from robot_rl.errors import ConfigError, LinkError, RobotRLError
from robot_rl.learn.learner import Learner
from robot_rl.learn.parallel.ranks import DistributedRanks
from robot_rl.link.handshake import Agreement
from robot_rl.link.inbox import error_of
from robot_rl.link.learner_child import start_beside
from robot_rl.link.messages import (
    Demonstration,
    EpisodeLabel,
    EpisodeRewards,
    Failure,
    LearnerReady,
    Message,
    Pretrain,
    RankHello,
    Start,
    StatePart,
    StateRequest,
    StepTaken,
    encode,
)
from robot_rl.link.socket import Connection
from robot_rl.link.state_transfer import CheckpointAssembler, cut
from robot_rl.system.child_process import ChildProcess

_T = TypeVar("_T")

END_LIMIT = 3.0
"""In which a process ends whose connection has ended [s]."""


def open_learner(agreement: Agreement, robots: Mapping[str, float] | None = None) -> Learner:
    """Return a learner, which has started all that learn along with it; close it in the end.

    Args:
        agreement: What it is made from; `learners` of its configuration is how many learn as one.
        robots: Share of each robot of a fleet in what is sampled, by name.

    Raises:
        ConfigError: if the devices are missing, or settings contradict each other.
        LinkError: if the others cannot be started.
    """
    if agreement.config.learners == 1:
        return Learner(*agreement, robots)
    others = Others(agreement, robots)
    try:
        return LeadingLearner(agreement, robots, others)
    except BaseException:
        others.close()
        raise


class Others:
    """The processes that learn along.

    Args:
        agreement: See `open_learner`.
        robots: See there.

    Raises:
        RobotRLError: if one cannot be started.
    """

    def __init__(self, agreement: Agreement, robots: Mapping[str, float] | None) -> None:
        config = agreement.config
        if config.device == "cuda" and torch.cuda.device_count() < config.learners:
            raise ConfigError(
                f"learners={config.learners} with device=cuda: each needs a GPU of its own, and torch sees "
                f"{torch.cuda.device_count()}; set learners to that, or less"
            )
        self._folder = Path(tempfile.mkdtemp(prefix="robot_rl-learners-"))
        self.meeting = self._folder / "meeting"
        self._members: list[tuple[Connection, ChildProcess]] = []
        try:
            hello = agreement.hello()
            for rank in range(1, config.learners):
                gpu = {"CUDA_VISIBLE_DEVICES": _gpu(rank)} if config.device == "cuda" else {}
                self._members.append(start_beside("robot_rl.link.rank_process", f"learner {rank + 1}", gpu))
            for rank, (connection, _) in enumerate(self._members, 1):
                greeting = RankHello(
                    config=hello.config,
                    task=hello.task,
                    percepts=hello.percepts,
                    fingerprint=hello.fingerprint,
                    robots=None if robots is None else dict(robots),
                    rank=rank,
                    meeting=str(self.meeting),
                )
                with self.explained():
                    connection.send(greeting)
            for connection, _ in self._members:
                with self.explained():
                    _expect(connection, LearnerReady)
        except BaseException:
            self.close()
            raise

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [process.pid for _, process in self._members]

    def send(self, message: Message) -> None:
        """Pass a message on to all of them.

        Raises:
            RobotRLError: what ended one of them.
        """
        content = encode(message)
        with self.explained():
            for connection, _ in self._members:
                connection.send_encoded(content)

    def memories(self) -> list[dict[str, Any]]:
        """Return the state of the memory of each; raises as `send`."""
        self.send(StateRequest())
        states = []
        with self.explained():
            for connection, _ in self._members:
                parts, state = CheckpointAssembler(), None
                while state is None:
                    state = parts.add(_expect(connection, StatePart))
                states.append(state)
        return states

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Name the process that is gone, and how it ended, in place of the error that shows it.

        Raises:
            RobotRLError: what ended that process.
        """
        try:
            yield
        except LinkError as error:
            reason = self._reason()
            if reason is None:
                raise
            raise reason from error

    def _reason(self) -> RobotRLError | None:
        """Return what ended one of them; None where none has ended. What they lost each other by does not count."""
        ended = [(number, member) for number, member in enumerate(self._members, 2) if member[1].wait(END_LIMIT)]
        failures = []
        for number, (connection, process) in ended:
            if (failure := _last(connection)) is not None and failure.error != LinkError.__name__:
                return error_of(failure)
            failures.append((failure is not None, number, process.describe_end()))
        if not failures:
            return None
        _, number, how = min(failures)
        return LinkError(
            f"learner {number} of {len(self._members) + 1} {how}; the run continues from its last checkpoint with "
            "--resume"
        )

    def close(self) -> None:
        """End all of them."""
        for connection, _ in self._members:
            connection.hang_up()
        for connection, process in self._members:
            process.end(END_LIMIT)
            connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class LeadingLearner(Learner):
    """A learner that leads others.

    Args:
        agreement: What it is made from.
        robots: Share of each robot of a fleet in what is sampled, by name.
        others: Those that it leads, which it ends.
    """

    def __init__(self, agreement: Agreement, robots: Mapping[str, float] | None, others: Others) -> None:
        self.others = others
        """Those that learn along."""
        config = agreement.config
        with others.explained():
            ranks = DistributedRanks(0, config.learners, others.meeting, config.device)
        super().__init__(*agreement, robots, ranks)

    def demonstrate(self, percepts: Sequence[Percept], steps: Sequence[Transition], episode_id: str = "") -> None:
        """See `Learner.demonstrate`."""
        self.others.send(Demonstration(percepts=list(percepts), steps=list(steps), episode_id=episode_id))
        super().demonstrate(percepts, steps, episode_id)

    def begin(self, percept: Percept, episode_id: str = "") -> None:
        """See `Learner.begin`."""
        self.others.send(Start(percept=percept, episode_id=episode_id))
        super().begin(percept, episode_id)

    def append(self, step: Transition, next_percept: Percept) -> None:
        """See `Learner.append`; `catch_up` has to follow, as the others make the updates at once."""
        self.others.send(StepTaken(number=self.env_steps, step=step, percept=next_percept))
        super().append(step, next_percept)

    def label_episode(self, episode_id: str, success: bool, since: int = 0) -> None:
        """See `Learner.label_episode`."""
        self.others.send(EpisodeLabel(episode_id=episode_id, success=success, since=since))
        super().label_episode(episode_id, success, since)

    def reward_episode(self, episode_id: str, closeness: np.ndarray) -> None:
        """See `Learner.reward_episode`."""
        self.others.send(EpisodeRewards(episode_id=episode_id, closeness=closeness))
        super().reward_episode(episode_id, closeness)

    def pretrain(self, updates: int) -> dict[str, float]:
        """See `Learner.pretrain`."""
        self.others.send(Pretrain(updates=updates))
        with self.others.explained():
            return super().pretrain(updates)

    def catch_up(self) -> dict[str, float] | None:
        """See `Learner.catch_up`; the figures are those of this learner's part of the minibatches."""
        with self.others.explained():
            return super().catch_up()

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next update depends on, the memories of all learners in one."""
        return {**super().state_dict(), **Memories.joined([self.memories.state_dict(), *self.others.memories()])}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned, of any number of learners."""
        super().load_state_dict(state)
        for part in cut(state):
            self.others.send(part)

    def close(self) -> None:
        """End those that learn along."""
        self.others.close()
        super().close()


def _expect(connection: Connection, kind: type[_T]) -> _T:
    """Return the next message, which has to be of this kind.

    Raises:
        RobotRLError: what ended the sender.
        LinkError: if it is another one.
    """
    message = connection.receive()
    if isinstance(message, Failure):
        raise error_of(message)
    if not isinstance(message, kind):
        raise LinkError(f"a learner sent {type(message).__name__}, expected {kind.__name__}")
    return message


def _last(connection: Connection) -> Failure | None:
    """Return what a process that has ended reported as its reason; None if it had no time to."""
    try:
        while not isinstance(message := connection.receive(), Failure):
            pass
    except LinkError:
        return None
    return message


def _gpu(rank: int) -> str:
    """Return which of the visible GPUs a process gets."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return visible.split(",")[rank] if visible else str(rank)
