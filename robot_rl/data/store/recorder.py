"""Writes the journal from a thread of its own, so that the control loop never waits for the disk."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass

from robot_rl.data.schema import Episode, Step
from robot_rl.data.store.journal import JournalWriter
from robot_rl.errors import DataError

QUEUE_STEPS = 64
"""Steps that may wait for the disk. They cost no memory: whoever records keeps them until the episode ends anyway."""


@dataclass(frozen=True)
class RecorderLoad:
    """Load of the disk in the newest episode.

    Attributes:
        waiting: Steps that wait for the disk now.
        queue_peak: Most steps that waited for the disk at a time, of `QUEUE_STEPS`.
        not_journalled: Steps that found the queue full. They are in the finished episode all the same, but would have
            been lost with a killed process.
    """

    waiting: int = 0
    queue_peak: int = 0
    not_journalled: int = 0


class StepRecorder:
    """Hand the steps of one episode to its journal. The first step that finds the queue full ends the journal.

    Args:
        journal: Where they go; belongs to the recorder from now on.
        capacity: Steps that may wait.
    """

    def __init__(self, journal: JournalWriter, capacity: int = QUEUE_STEPS) -> None:
        self.journal = journal
        self.error: OSError | DataError | None = None
        """After `close`, what went wrong with writing, if anything did; steps after that are not journalled."""
        # Of the queues the one that stays in order when Ctrl-C interrupts a `put`; it has no bound of its own.
        self._queue: queue.SimpleQueue[Step | Episode | None] = queue.SimpleQueue()
        self._capacity = capacity
        self._taken = self._written = self._peak = self._missed = 0
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    @property
    def load(self) -> RecorderLoad:
        """Load of the disk."""
        return RecorderLoad(self._taken - self._written, self._peak, self._missed)

    def add(self, step: Step) -> None:
        """Take a step and returns at once."""
        if self._missed or self._queue.qsize() >= self._capacity:
            self._missed += 1
            return
        self._queue.put(step)
        self._taken += 1
        self._peak = max(self._peak, self._taken - self._written)

    def finish(self, episode: Episode) -> None:
        """Completes the journal, unless it has ended before, and waits until it is written."""
        if not self._missed:
            self._queue.put(episode)
        self.close()

    def close(self) -> None:
        """Write what waits and closes the journal; doing it twice is fine."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        self.error = DataError("the journal's thread ended by an error of the program, which was printed")
        error: OSError | DataError | None = None
        try:
            while (item := self._queue.get()) is not None:
                if error is not None:
                    continue
                try:
                    if isinstance(item, Step):
                        self.journal.write(item)
                        self._written += 1
                    else:
                        self.journal.finish(item)
                except (OSError, DataError) as refused:
                    error = refused
            self.error = error  # none, or one that can be cured
        finally:
            self.journal.close()
