"""A program that answers every request with one line on its standard output."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Mapping, Sequence
from typing import Any

from robot_rl.system.child_process import ChildProcess

LONGEST_LINE = 2**20
"""Of an answer [bytes]."""
EXIT_LIMIT = 2.0
"""Longest time for an orderly end [s]."""


class NoAnswerError(Exception):
    """A program did not answer; the text says how it ended. For whoever runs it, who names it."""


class LineProcess:
    """A running program; one request at a time.

    The thread that asks writes and reads by itself. No other thread has to be scheduled in between, so a thread with
    real-time priority has its answer as soon as the program gives it.

    Args:
        command: The program and its arguments.
        environment: All variables of the process; None copies ours.

    Raises:
        OSError: if it cannot be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._process: ChildProcess | None = ChildProcess(command, environment=environment, pipes=True)
        for pipe in (self._process.stdin, self._process.stdout):
            os.set_blocking(pipe.fileno(), False)
        self._received = bytearray()

    def request(self, content: Mapping[str, Any], limit: float) -> Any:
        """Send a request as a line of JSON, and return the answer, which is one as well; otherwise as `exchange`."""
        return json.loads(self.exchange(json.dumps(content).encode() + b"\n", limit))

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
        with contextlib.suppress(OSError, ValueError):  # it has ended, or another thread ends it
            if line := self._line(process, memoryview(content), time.monotonic() + limit):
                return line
        has_ended = process.wait(EXIT_LIMIT / 4) is not None  # it may just have done so, by itself
        state = process.describe_end()
        self.end(0.0)
        if has_ended:
            raise NoAnswerError(f"no answer, as it {state}")
        raise NoAnswerError(f"no answer within {limit:g} s, or one of more than {LONGEST_LINE} bytes; it {state}")

    def _line(self, process: ChildProcess, content: memoryview, end: float) -> bytes:
        """Write the request and read at the same time, as either side may wait for the other; empty: no line came."""
        writes, reads = process.stdin.fileno(), process.stdout.fileno()
        ready = select.poll()
        ready.register(reads, select.POLLIN)
        if content:
            ready.register(writes, select.POLLOUT)
        while True:
            if not content and b"\n" in self._received:
                line, _, rest = self._received.partition(b"\n")
                self._received = bytearray(rest)
                return bytes(line) + b"\n" if len(line) < LONGEST_LINE else b""
            left = end - time.monotonic()
            if left <= 0.0 or len(self._received) >= LONGEST_LINE:
                return b""
            for pipe, _ in ready.poll(1e3 * left):
                if pipe == writes:
                    content = content[os.write(writes, content) :]
                    if not content:
                        ready.unregister(writes)
                elif received := os.read(reads, LONGEST_LINE):
                    self._received += received
                else:
                    return b""

    def end(self, grace_period: float = EXIT_LIMIT) -> None:
        """End it; doing it twice is fine.

        Args:
            grace_period: Time for an orderly end, after the end of its input [s].
        """
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                process.end(grace_period)
