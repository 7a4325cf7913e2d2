"""A program that answers every request with one line on its standard output."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Mapping, Sequence
from typing import IO

from robot_rl.system.child_process import ChildProcess

LONGEST_LINE = 2**20
"""Of an answer [bytes]."""
EXIT_LIMIT = 2.0
"""Longest time for an orderly end [s]."""


class NoAnswerError(Exception):
    """A program did not answer; the text says how it ended. For whoever runs it, who names it."""


class LineProcess:
    """A running program; one request at a time.

    Args:
        command: The program and its arguments.
        environment: All variables of the process; None copies ours.

    Raises:
        OSError: if it cannot be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._process: ChildProcess | None = ChildProcess(command, environment=environment, pipes=True)
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()

    def exchange(self, content: bytes, limit: float) -> bytes:
        """Send a request, and return the line that answers it; a program that does not answer in time is ended.

        Args:
            content: Of the request; may be empty for the line that comes by itself.
            limit: Longest time [s].

        Raises:
            NoAnswerError: if there is no answer.
        """
        process = self._process
        if process is None:
            raise NoAnswerError("the program has ended")
        # A program that reads nothing would block the write: the timer ends it then.
        timer = threading.Timer(limit, self.end, (0.0,))
        timer.start()
        try:
            process.stdin.write(content)
            process.stdin.flush()
            line = self._lines.get(timeout=limit)
        except (OSError, ValueError, queue.Empty):
            line = b""
        finally:
            timer.cancel()
        if line.endswith(b"\n"):
            return line
        process.wait(EXIT_LIMIT / 4)  # it may just have ended by itself
        state = process.describe_end()
        self.end(0.0)
        raise NoAnswerError(f"no answer within {limit:g} s, or one of more than {LONGEST_LINE} bytes; it {state}")

    def end(self, grace_period: float = EXIT_LIMIT) -> None:
        """End it; doing it twice is fine.

        Args:
            grace_period: Time for an orderly end, after the end of its input [s].
        """
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.end(grace_period)


def _read(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    """Put each line, and what is left at the end, into a queue."""
    with contextlib.suppress(OSError, ValueError):
        while line := stream.readline(LONGEST_LINE):
            lines.put(line)
            if not line.endswith(b"\n"):
                break
    lines.put(b"")
