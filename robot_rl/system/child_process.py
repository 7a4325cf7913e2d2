"""A program that we start beside ours: it ends with us, and its last lines on standard error explain its end.

All processes of ours that run beside another one are started here: the learner, the labeller and the nodes of a
bring-up. What they exchange with their parent is their own business.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO

KEPT_LINES = 20
"""Last lines on standard error that are kept for a report."""
_DRAIN_LIMIT = 1.0
"""Longest wait for the lines of a process that has ended [s]; a grandchild may hold its standard error open."""
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl  # loaded here: between fork and exec only one plain call is safe


class ChildProcess:
    """A running process.

    It has a process group of its own, so Ctrl-C in a terminal reaches only the parent, which ends the process in order.
    A thread of ours starts it, relays its lines and waits for its end. The thread lives as long as the process, because
    the kernel sends `death_signal` when the *thread* that started a process is gone.

    Args:
        command: The program and its arguments.
        environment: All variables of the process; None copies ours.
        inherit: File descriptors that stay open in the process.
        pipes: Whether standard input and output are the pipes `stdin` and `stdout`. Otherwise standard input is empty,
            and lines on standard output are handled like those on standard error.
        on_line: Receives each line on standard error without its end, in a thread of ours; None writes the lines to
            ours.
        niceness: Added to ours; the kernel prefers processes with less.
        death_signal: Sent by the kernel when we are gone, however that happened; None for a process that finds out by
            itself, e.g. by the end of its input.

    Raises:
        OSError: if the operating system cannot start it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        inherit: Sequence[int] = (),
        pipes: bool = False,
        on_line: Callable[[str], object] | None = None,
        niceness: int = 0,
        death_signal: signal.Signals | None = signal.SIGKILL,
    ) -> None:
        self._on_line = on_line or _write_to_stderr
        self._last_lines: deque[str] = deque(maxlen=KEPT_LINES)
        started: list[subprocess.Popen[bytes] | OSError] = []
        is_started = threading.Event()

        def start_and_wait() -> None:
            try:
                process = subprocess.Popen(
                    command,
                    env=environment,
                    pass_fds=inherit,
                    stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE if pipes else subprocess.STDOUT,
                    process_group=0,
                    preexec_fn=_prepare(os.getpid(), niceness, death_signal),
                )
            except OSError as error:
                started.append(error)
                return
            else:
                started.append(process)
            finally:
                is_started.set()
            self._relay(process.stderr if pipes else process.stdout)
            process.wait()

        self._thread = threading.Thread(target=start_and_wait, name=f"child {command[0]}", daemon=True)
        self._thread.start()
        is_started.wait()
        if isinstance(started[0], OSError):
            raise started[0]
        self._process = started[0]

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    @property
    def stdin(self) -> IO[bytes]:
        """Standard input; only with `pipes`."""
        return _pipe(self._process.stdin)

    @property
    def stdout(self) -> IO[bytes]:
        """Standard output; only with `pipes`."""
        return _pipe(self._process.stdout)

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines that it wrote to standard error, at most `KEPT_LINES`."""
        return tuple(self._last_lines)

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while the process runs."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end and for the last lines; return the exit code, or None if it runs on after `timeout` [s]."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        if threading.current_thread() is not self._thread:
            self._thread.join(_DRAIN_LIMIT)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal; a process that has ended gets none."""
        self._process.send_signal(number)

    def end(self, grace_period: float, number: signal.Signals | None = None) -> bool:
        """Close its input, send `number` if given, and kill the process if it still runs after the grace period.

        Args:
            grace_period: Time for an orderly end [s].
            number: The signal that requests the end; None if the end of its input or of a link requests it.

        Returns:
            Whether it ended within the grace period.
        """
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # lines that it has not read
                self._process.stdin.close()
        if number is not None:
            self.send_signal(number)
        if self.wait(grace_period) is not None:
            return True
        self._process.kill()
        self.wait()
        return False

    def describe_end(self) -> str:
        """Return how the process ended, with its last line if it ended by an error, e.g. for "the learner ..."."""
        code = self.poll()
        if code is None:
            return "still runs"
        if code == -signal.SIGKILL:
            return "was killed (SIGKILL: by somebody, or for lack of memory)"
        if code < 0:
            return f"was ended by {describe_code(code)}"
        last = f": {self._last_lines[-1]}" if code and self._last_lines else ""
        return f"ended with {describe_code(code)}{last}"

    def _relay(self, stream: IO[bytes] | None) -> None:
        for line in stream or ():
            text = line.decode(errors="replace").rstrip()
            if text:
                self._last_lines.append(text)
            self._on_line(text)


def describe_code(code: int) -> str:
    """Return `exit code 2` or, for a negative code, the name of the signal, e.g. `SIGTERM`."""
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _write_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("the process was started without pipes")
    return stream


def _prepare(parent: int, niceness: int, death_signal: signal.Signals | None) -> Callable[[], None]:
    """Return what the new process does before it becomes the program."""

    def prepare() -> None:
        if hasattr(os, "sched_setscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # real-time priority is of threads that control
        if niceness:
            os.nice(niceness)
        if death_signal is not None:
            _prctl(_PR_SET_PDEATHSIG, int(death_signal))
            if os.getppid() != parent:  # the parent died before the call, so no signal will come
                os.kill(os.getpid(), death_signal)

    return prepare
