"""The thread in which a driver controls its arm: absolute deadlines, real-time priority where it is allowed."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PRIORITY = 40
"""Real-time priority (SCHED_FIFO, 1 to 99); interrupt threads of the kernel have 50."""
ACTING = 20
"""Of the thread that acts: it waits for deadlines, too, but makes way for those that control an arm."""
BESIDE = 10
"""Of threads of a library that those hold up, e.g. because both want the same lock."""
SWITCH_INTERVAL = 0.0005
"""How long another Python thread may keep one that controls waiting for the interpreter's lock [s]."""
NO_PRIORITY = (
    "this process may not use real-time priority, so control is late when the machine is busy; cure: "
    "`sudo usermod -aG realtime $USER`, the lines `@realtime - rtprio 99` and `@realtime - memlock unlimited` in "
    "/etc/security/limits.d/realtime.conf, and a new login"
)


class ControlThread:
    """Calls a function at a fixed rate until it is closed.

    Args:
        name: Of the thread.
        rate: Calls per second [Hz].
        step: What is called. An error in it ends the thread; `alive` then is False.
        problem: Given one text if there is no real-time priority.
    """

    def __init__(
        self, name: str, rate: float, step: Callable[[], None], problem: Callable[[str], None] = lambda _: None
    ) -> None:
        self._period, self._step, self._problem = 1.0 / rate, step, problem
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.cycles = 0
        """Number of calls."""
        self.late = 0
        """Number of calls that began a period or more after their deadline; their lost deadlines are skipped."""

    @property
    def alive(self) -> bool:
        """Whether it is running."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start to call."""
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
        self._thread.start()

    def close(self, timeout: float = 2.0) -> None:
        """End it, and wait for the call that is running; doing it twice is fine.

        Args:
            timeout: Longest wait [s].
        """
        self._ended.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        if not take_priority():
            self._problem(NO_PRIORITY)
        deadline = time.monotonic()
        while not self._ended.is_set():
            self._step()
            self.cycles += 1
            deadline += self._period
            wait = deadline - time.monotonic()
            if wait > 0.0:
                time.sleep(wait)
            elif wait < -self._period:
                self.late += 1
                deadline = time.monotonic()


@contextmanager
def own_priority() -> Iterator[None]:
    """Give the calling thread its scheduling back at the end of the block.

    Libraries of vendors raise the priority of whoever opens a connection. What that thread starts would inherit it, and
    a learner at the highest real-time priority leaves nothing to the rest of the machine.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        if os.sched_getscheduler(0) != policy or os.sched_getparam(0) != parameters:
            os.sched_setscheduler(0, policy, parameters)


def take_priority(priority: int = PRIORITY, *, inherited: bool = False) -> bool:
    """Give the calling thread real-time priority; return whether the machine allows it.

    What the thread starts from then on has none, unless it is inherited.
    """
    if not hasattr(os, "sched_setscheduler"):
        return False
    policy = os.SCHED_FIFO if inherited else os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    try:
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except OSError:  # of a user without the right, and in containers
        return False
    return True


@contextmanager
def acting() -> Iterator[None]:
    """Give the calling thread, which acts on an arm, its priority until the end of the block, where that is allowed.

    Without, it waits for the processor, or for a thread that has Python's lock and waits for it.
    """
    with own_priority():
        take_priority(ACTING)
        yield


@contextmanager
def starting_beside() -> Iterator[None]:
    """Give the threads that the block starts the priority `BESIDE`, where that is allowed."""
    with own_priority():
        take_priority(BESIDE, inherited=True)
        yield
