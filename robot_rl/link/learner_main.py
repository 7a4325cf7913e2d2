"""The main program of a process that learns: it serves the process that started it, over a socket inherited from it."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Sequence

import torch

from robot_rl.errors import RobotRLError
from robot_rl.link.messages import Failure
from robot_rl.link.socket import Connection, PeerGoneError
from robot_rl.system.process import keep_imports


def serve_starter(
    argv: Sequence[str] | None, starter: str, serve: Callable[[Connection], object], *, when_gone: int
) -> int:
    """Serve until the end, and report the error that ends it; return the exit code.

    Args:
        argv: The number of the socket; None takes the process's own arguments.
        starter: What the other process is called in errors.
        serve: Serves the connection.
        when_gone: Exit code where the other process is gone, who would receive the error.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they reach the other process too, who saves and then ends this one
    keep_imports()
    (descriptor,) = sys.argv[1:] if argv is None else argv
    torch.set_num_threads(1)
    connection = Connection(socket.socket(fileno=int(descriptor)), starter)
    try:
        serve(connection)
    except PeerGoneError:
        return when_gone
    except RobotRLError as error:
        with contextlib.suppress(PeerGoneError):
            connection.send(Failure(error=type(error).__name__, text=str(error)))
        return 1
    finally:
        connection.close()
    return 0
