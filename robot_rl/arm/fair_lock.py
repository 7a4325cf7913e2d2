"""A lock that is given in the order in which it is asked for.

A loop that lets go of a `threading.Lock` and takes it again at once keeps all others waiting, for minutes.
"""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A lock for `with`; not reentrant."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._is_held = False

    def __enter__(self) -> None:
        """Wait for the lock."""
        with self._guard:
            if not self._is_held:
                self._is_held = True
                return
            turn = threading.Event()
            self._waiting.append(turn)
        turn.wait()

    def __exit__(self, *_: object) -> None:
        """Give it to the one who has waited longest."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()  # stays held: it changes hands
            else:
                self._is_held = False
