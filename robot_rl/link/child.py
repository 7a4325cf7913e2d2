"""Starts the learner's process, and says how it ended."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from robot_rl.errors import LinkError
from robot_rl.link.connection import Connection

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
