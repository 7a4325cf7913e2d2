"""The learner in a process of our own: how the actor starts it, posts to it and ends it."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Mapping

from robot_rl.errors import LinkError, RobotRLError
from robot_rl.link.messages import Message
from robot_rl.link.socket import Connection, Courier
from robot_rl.system.child_process import ChildProcess
from robot_rl.system.process import python_module

EXIT_LIMIT = 3.0
"""Longest time that an orderly end of the process may take [s]. Nothing is lost: what counts is in checkpoints."""

_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**27)}
"""Keep freed memory: by default glibc gives each batch back and fetches it again, 500 page faults or 3 % of a step."""


def start_beside(module: str, name: str, variables: Mapping[str, str] | None = None) -> tuple[Connection, ChildProcess]:
    """Start an interpreter that runs a module; return the connection to it and the process.

    It inherits one end of a socket pair and no other file, so it holds no lock of ours, and nothing else can reach
    either side. It is started as a program of its own and not by `multiprocessing`, which would run the caller's main
    script again.

    Args:
        module: Its argument is the number of its socket.
        name: Of the process in errors.
        variables: Of its environment, besides ours.

    Raises:
        LinkError: if the operating system refuses.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        command = [*python_module(module), str(theirs.fileno())]
        environment = {**_MALLOC, **os.environ, **(variables or {})}
        try:
            process = ChildProcess(command, environment=environment, inherit=[theirs.fileno()])
        except OSError as error:
            ours.close()
            raise LinkError(f"cannot start a process for the {name}: {error.strerror}") from error
    return Connection(ours, name), process


class LearnerProcess:
    """A `LearnerPeer` that is a process of our own. It is not started again: a run continues from its checkpoint."""

    def __init__(self) -> None:
        self._process: ChildProcess | None = None
        self._courier: Courier | None = None

    @property
    def pid(self) -> int | None:
        """Number of the process; None before `open`."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """Of the process, negative for a signal; None while it runs, and before `open`."""
        return self._process.poll() if self._process else None

    def open(
        self,
        on_message: Callable[[Message], None],
        on_error: Callable[[RobotRLError], None],
        on_restart: Callable[[], None],
    ) -> None:
        """Start the process."""
        del on_restart  # it never does
        connection, self._process = start_beside("robot_rl.link.learner_process", "learner")
        self._courier = Courier(connection, on_message, on_error)

    def post(self, message: Message) -> None:
        """Hand the message to the courier."""
        if self._courier is None:
            raise LinkError("the learner's process has not been started")
        self._courier.post(message)

    def restart_from(self, messages: Callable[[], Iterable[Message]]) -> None:
        """Do nothing: the process is not started again."""

    def describe_end(self) -> str:
        """Return how the process ended, and how to continue."""
        if self._process is None:
            how = "was not started"
        elif self._process.wait(EXIT_LIMIT) is None:
            how = "has closed the link, but still runs"
        else:
            how = self._process.describe_end()
        return f"the learner's process {how}; the run continues from its last checkpoint with --resume"

    def close(self, farewell: Message | None) -> None:
        """End the process: it receives `farewell`, or without one finds the link closed."""
        if self._process is None or self._courier is None:
            return
        if farewell is not None:
            with contextlib.suppress(LinkError):
                self._courier.post(farewell)
        else:
            self._courier.close()
        self._process.end(EXIT_LIMIT)
        self._courier.close()
