"""Ctrl-C in work that can be ended in order: the first asks for that, the second ends it at once.

How many threads torch computes with, and who on a machine goes first: control, then learning, then labelling.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

LEARNING = 5
"""Niceness of who learns beside control."""
LABELLING = 10
"""Niceness of who labels beside both."""


def one_thread() -> None:
    """Two torch threads on two busy cores are slower than one."""
    import torch  # here, as it takes seconds to import, and commands that compute nothing shall not wait for it

    torch.set_num_threads(1)


def make_way(niceness: int) -> None:
    """Lets processes of less niceness on this machine go before the calling thread and those that it starts."""
    os.nice(max(niceness - os.nice(0), 0))


@contextlib.contextmanager
def stop_on_signal(request: Callable[[], object]) -> Iterator[None]:
    """The first Ctrl-C (or SIGTERM) calls `request`; a second one raises `KeyboardInterrupt`."""
    asked = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        del number, frame  # which it was, and where, does not matter
        if asked:
            raise KeyboardInterrupt
        asked = True
        request()

    old: dict[int, Callable[..., Any] | int | None] = {
        number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
