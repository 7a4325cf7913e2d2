"""The training's end of the link to its labeller's process, which it starts, and starts again if it dies.

Only entering and closing it wait: a thread of its own reads the messages of the labeller.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from robot_rl.errors import ConfigError, LinkError
from robot_rl.reward.labels.process_messages import (
    TO_LABELLER,
    TO_TRAINING,
    EpisodeRecorded,
    Labelled,
    LabellerEnded,
    LabellerMessage,
    LabellerReady,
    LabellingOrder,
    Order,
    RoundDone,
    SessionDone,
    StepsRewarded,
    StoreOpened,
    TrainingMessage,
)
from robot_rl.system.child_process import ChildProcess
from robot_rl.system.process import LABELLING, python_module

Result = Labelled | SessionDone | StepsRewarded | RoundDone
READY_LIMIT = 300.0
"""Longest time until the first start is ready [s]; a local model has to be loaded."""
EXIT_LIMIT = 3.0
"""Longest time that an orderly end may take [s]; nothing is lost if it is not orderly."""
PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Before the first, second, ... new start in a row; the last one goes on [s]."""


class LabellerLink:
    """A labeller beside a training. Use it in a `with` block: entering starts the process.

    Args:
        order: The labeller's settings.
        notify: Receives a sentence for the user, from any thread.
        module: Which the process runs.

    Raises:
        ConfigError: on entering, if the labeller cannot do what `order` requires; with the labeller's own message.
    """

    def __init__(
        self, order: Order, notify: Callable[[str], object], module: str = "robot_rl.reward.labels.process"
    ) -> None:
        self._order, self.notify, self._module = order, notify, module
        self._messages: deque[Result] = deque()
        self._process: ChildProcess | None = None
        self._lock = threading.Lock()  # of the process and its standard input
        self._store: Path | None = None
        self._closing = threading.Event()
        self._ready = threading.Event()
        self._refused = ""
        self._received = 0  # messages, so far
        self.starts = 0
        """Of the process, so far."""
        self.ended = ""
        """Why no more labels will come; empty while they may."""
        self._thread = threading.Thread(target=self._keep_running, name="labeller", daemon=True)

    def __enter__(self) -> Self:
        """Start the process, and wait until it is ready."""
        self._thread.start()
        ready = self._ready.wait(READY_LIMIT)
        if self._refused or not ready:
            self.close()
            raise ConfigError(f"the labeller cannot start: {self._refused or f'not ready within {READY_LIMIT:g} s'}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the link."""
        self.close()

    def begin(self, store: Path) -> None:
        """Have the labeller label the episodes of this store, first those that are there."""
        with self._lock:
            self._store = store
            self._post(StoreOpened(str(store)))

    def on_recorded(self) -> None:
        """Report that an episode was recorded; a process that is just being started finds it without a report."""
        if self._lock.acquire(blocking=False):
            try:
                self._post(EpisodeRecorded())
            finally:
                self._lock.release()

    def collect(self) -> list[Result]:
        """Return the messages since the last call."""
        return [self._messages.popleft() for _ in range(len(self._messages))]

    def close(self) -> None:
        """End the process; a second call does nothing."""
        self._closing.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.end(EXIT_LIMIT)
        if self._thread.is_alive():
            self._thread.join()

    def _post(self, message: TrainingMessage) -> None:
        """Write a message, with the lock held. A process that has just died gets none; the next one finds it all."""
        if self._process is not None and not self._closing.is_set():
            with contextlib.suppress(OSError):
                TO_LABELLER.write(self._process.stdin, message)

    def _keep_running(self) -> None:
        in_a_row = 0
        while not self._closing.is_set():
            received_before = self._received
            why = self._run()
            if self._closing.is_set() or self.ended:
                return
            if not self._ready.is_set():
                self._refused = why
                self._ready.set()
                return
            in_a_row = 0 if self._received > received_before else in_a_row
            pause = PAUSES[min(in_a_row, len(PAUSES) - 1)]
            in_a_row += 1
            self.notify(f"the labeller ended ({why}); what it stored is kept, it starts again in {pause:g} s")
            self._closing.wait(pause)

    def _run(self) -> str:
        """Start the process and read its messages until it ends; return how it ended."""
        with self._lock:
            if self._closing.is_set():
                return ""
            try:
                process = self._process = ChildProcess(
                    python_module(self._module),
                    environment={"OMP_NUM_THREADS": "1", **os.environ},  # beside a learner more threads would only wait
                    pipes=True,
                    niceness=LABELLING,
                    death_signal=None,  # the end of its input ends it, after it has stored answers that are paid for
                )
            except OSError as error:
                return f"no process for it: {error.strerror}"
            self.starts += 1
            self._post(LabellingOrder.of(self._order))
            if self._store is not None:
                self._post(StoreOpened(str(self._store)))
        last = ""
        while (message := _next_message(process.stdout)) is not None:
            match message:
                case LabellerReady():
                    self._ready.set()
                case LabellerEnded():
                    last = message.why
                    if not message.failed:
                        self.ended = message.why
                        self.notify(f"no more labels: {message.why}")
                case _:
                    self._messages.append(message)
                    self._received += 1
        process.wait()
        return last or process.describe_end()


def _next_message(stream: IO[bytes]) -> LabellerMessage | None:
    """Read the next message; None when the process has ended, also in the middle of one."""
    try:
        return TO_TRAINING.read(stream)
    except LinkError:
        return None


def wait_until(done: Callable[[], bool], *, poll: float = 0.01) -> None:
    """Wait until `done`, which is called every `poll` seconds; for labels where time stands still meanwhile."""
    while not done():
        time.sleep(poll)
