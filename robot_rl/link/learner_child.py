"""Starts the learner's process, and says how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable

from robot_rl.errors import LinkError, RobotRLError
from robot_rl.link.messages import Message
from robot_rl.link.socket import Connection, Courier

EXIT_LIMIT = 3.0
"""Longest time that an orderly end of the process may take [s]."""

_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**27)}
"""Keep freed memory: by default glibc gives each batch back and fetches it again, 500 page faults or 3 % of a step."""


def start_learner() -> tuple[Connection, subprocess.Popen[bytes]]:
    """A fresh interpreter that runs `learner_process`, and the connection to it.

    It inherits one end of a socket pair and no other file, so it holds no lock of ours, and nobody else can talk to
    either side. It is started as a program of its own and not by `multiprocessing`, which would run the caller's main
    script again. Ctrl-C in a terminal does not reach it: it has a process group of its own.

    Raises:
        LinkError: if the operating system refuses.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "robot_rl.link.learner_process", str(theirs.fileno())]
        try:
            process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=2,  # standard output is for the answer of the command line
                env={**_MALLOC, **os.environ},
                process_group=0,
            )
        except OSError as error:
            ours.close()
            raise LinkError(f"cannot start a process for the learner: {error.strerror}") from error
    return Connection(ours, "learner"), process


def describe_end(process: subprocess.Popen[bytes]) -> str:
    """How the process ended, in words; waits a little for its end."""
    try:
        code = process.wait(EXIT_LIMIT)
    except subprocess.TimeoutExpired:
        return "the learner's process has closed the link, but still runs"
    if code == -signal.SIGKILL:
        return "the learner's process was killed (SIGKILL: by somebody, or for lack of memory)"
    if code < 0:
        return f"the learner's process was ended by {signal.Signals(-code).name}"
    return f"the learner's process ended with exit code {code}; what it said is above"


def end(process: subprocess.Popen[bytes]) -> None:
    """Waits for the process to end; one that does not is killed. Nothing is lost: what counts is in checkpoints."""
    try:
        process.wait(EXIT_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class LearnerProcess:
    """A `LearnerPeer` that is a process of our own. It is not started again: a run continues from its checkpoint."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._courier: Courier | None = None

    def open(
        self,
        on_message: Callable[[Message], None],
        on_error: Callable[[RobotRLError], None],
        on_restart: Callable[[], None],
    ) -> None:
        """Starts the process."""
        del on_restart  # it never does
        connection, self._process = start_learner()
        self._courier = Courier(connection, on_message, on_error)

    def post(self, message: Message) -> None:
        """Hands the message to the courier."""
        if self._courier is None:
            raise LinkError("the learner's process has not been started")
        self._courier.post(message)

    def restart_from(self, messages: Callable[[], Iterable[Message]]) -> None:
        """Of no use: the process is not started again."""

    def describe_end(self) -> str:
        """How the process ended."""
        how = describe_end(self._process) if self._process else "the learner's process was not started"
        return f"{how}; the run continues from its last checkpoint with --resume"

    def close(self, farewell: Message | None) -> None:
        """Ends the process; one that need not be told politely finds the link closed."""
        if self._process is None or self._courier is None:
            return
        if farewell is not None:
            with contextlib.suppress(LinkError):
                self._courier.post(farewell)
        else:
            self._courier.close()
        end(self._process)
        self._courier.close()
