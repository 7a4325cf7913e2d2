"""Settings of our own process: what Ctrl-C does, the number of torch threads, the priority, and what is garbage.

Control has the highest priority on a machine, then learning, then labelling.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

LEARNING = 5
"""Niceness of a learner beside control."""
LABELLING = 10
"""Niceness of a labeller beside both."""


def one_thread() -> None:
    """Have torch compute with one thread: two on two busy cores are slower than one."""
    import torch  # here, as it takes seconds to import, and commands that compute nothing shall not wait for it

    torch.set_num_threads(1)


def keep_imports() -> None:
    """Have Python not look for garbage among what has been imported so far, which stays as long as the process anyway.

    With torch or MuJoCo a look takes a tenth of a second, in which no thread controls, and half a second at the end.
    """
    gc.freeze()


def make_way(niceness: int) -> None:
    """Raise the niceness of the calling thread, and of those that it starts, to at least this."""
    os.nice(max(niceness - os.nice(0), 0))


def python_module(module: str) -> list[str]:
    """Return the command that runs a module as a program with our interpreter, and finds what we find.

    `python -m` would put the working directory first on the path, and a folder of the same name there before ours.
    """
    is_searched = False
    with contextlib.suppress(FileNotFoundError):  # the working directory was deleted
        is_searched = Path.cwd().resolve() in (Path(entry).resolve() for entry in sys.path)
    return [sys.executable, *(() if is_searched else ("-P",)), "-m", module]


def leave_terminal() -> None:
    """Have what goes to a terminal go nowhere from now on: to write to one that is closed is an error."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if os.isatty(stream):
            os.dup2(nowhere, stream)
    os.close(nowhere)


@contextlib.contextmanager
def stop_on_signal(request: Callable[[], object]) -> Iterator[None]:
    """Call `request` at the first Ctrl-C, SIGTERM or closed terminal, and raise `KeyboardInterrupt` at the second."""
    requested = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        del frame  # where it was does not matter
        if number == signal.SIGHUP:
            leave_terminal()
        if requested:
            raise KeyboardInterrupt
        requested = True
        request()

    old: dict[int, Callable[..., Any] | int | None] = {
        number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
