"""The training's end of the link to its labeller's process, which it starts, and starts again if it dies.

Only entering and closing it wait: what the labeller says is read by a thread of its own. It knows processes and the
words that cross; it does not know episodes, or what labels mean.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from robot_rl.errors import ConfigError
from robot_rl.reward.labels.process_messages import ORDERS, WORDS, Ended, Labelled, Looked, Order, Ready

READY_LIMIT = 300.0
"""Longest time until the first start is ready [s]; a local model has to be loaded."""
EXIT_LIMIT = 3.0
"""Longest time that an orderly end may take [s]; nothing is lost if it is not orderly."""
PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Before the first, second, ... new start in a row; the last one goes on [s]."""


class LabellerLink:
    """A labeller beside a training. Use it in a `with` block: entering starts the process.

    Args:
        order: What it is told.
        say: Takes a sentence for the user, from any thread.

    Raises:
        ConfigError: on entering, if the labeller cannot do what it is told; in its own words.
    """

    def __init__(self, order: Order, say: Callable[[str], object]) -> None:
        self._order, self.say = order, say
        self._words: deque[Labelled | Looked] = deque()
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()  # of the process and its standard input
        self._store: Path | None = None
        self._closing = threading.Event()
        self._ready = threading.Event()
        self._refused = ""
        self._heard = 0  # words, so far
        self.starts = 0
        """Of the process, so far."""
        self.ended = ""
        """Why no more labels will come; empty while they may."""
        self._thread = threading.Thread(target=self._keep_running, name="labeller", daemon=True)

    def __enter__(self) -> Self:
        """Starts it, and waits until it is ready."""
        self._thread.start()
        ready = self._ready.wait(READY_LIMIT)
        if self._refused or not ready:
            self.close()
            raise ConfigError(f"the labeller cannot start: {self._refused or f'not ready within {READY_LIMIT:g} s'}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes."""
        self.close()

    def begin(self, store: Path) -> None:
        """Has it label the episodes of this store, those that are there first."""
        with self._lock:
            self._store = store
            self._post(f"{store}\n")

    def look(self) -> None:
        """Tells it that an episode was recorded; one that is just being started finds it without being told."""
        if self._lock.acquire(blocking=False):
            try:
                self._post("\n")
            finally:
                self._lock.release()

    def take(self) -> list[Labelled | Looked]:
        """What it said since the last call."""
        return [self._words.popleft() for _ in range(len(self._words))]

    def close(self) -> None:
        """Ends it; doing it twice is fine."""
        self._closing.set()
        with self._lock:
            process = self._process
            if process is not None and process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        if process is not None:
            try:
                process.wait(EXIT_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._thread.is_alive():
            self._thread.join()

    def _post(self, line: str) -> None:
        """To be called with the lock; to a process that has just died nothing is said, the next one finds it all."""
        if self._process is not None and self._process.stdin is not None and not self._closing.is_set():
            with contextlib.suppress(OSError):
                self._process.stdin.write(line)
                self._process.stdin.flush()

    def _keep_running(self) -> None:
        in_a_row = 0
        while not self._closing.is_set():
            heard_before = self._heard
            why = self._run()
            if self._closing.is_set() or self.ended:
                return
            if not self._ready.is_set():
                self._refused = why
                self._ready.set()
                return
            in_a_row = 0 if self._heard > heard_before else in_a_row
            pause = PAUSES[min(in_a_row, len(PAUSES) - 1)]
            in_a_row += 1
            self.say(f"the labeller ended ({why}); what it stored is kept, it starts again in {pause:g} s")
            self._closing.wait(pause)

    def _run(self) -> str:
        """One life of the process; how it ended."""
        with self._lock:
            if self._closing.is_set():
                return ""
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "robot_rl.reward.labels.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={"OMP_NUM_THREADS": "1", **os.environ},  # beside a learner more threads would only wait
                process_group=0,  # Ctrl-C is for the training, which ends this
            )
            self.starts += 1
            self._post(ORDERS.dump_json(self._order).decode() + "\n")
            if self._store is not None:
                self._post(f"{self._store}\n")
        last = ""
        for line in process.stdout or ():
            try:
                word = WORDS.validate_json(line)
            except ValidationError:  # cut short by its end
                break
            match word:
                case Ready():
                    self._ready.set()
                case Ended():
                    last = word.why
                    if not word.failed:
                        self.ended = word.why
                        self.say(f"no more labels: {word.why}; continue with --resume and a larger reward.budget")
                case _:
                    self._words.append(word)
                    self._heard += 1
        code = process.wait()
        return last or (signal.Signals(-code).name if code < 0 else f"exit code {code}")


def wait_until(done: Callable[[], bool], *, look: float = 0.01) -> None:
    """Waits; for labels where time stands still meanwhile."""
    while not done():
        time.sleep(look)
