"""Ctrl-C in work that can be ended in order: the first asks for that, the second ends it at once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


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
