"""Standard output as the place of a command's answer, and of nothing else."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_for_answer() -> Iterator[None]:
    """Have all that is written to standard output go to standard error, until the block ends.

    Environments, bases and drivers of others print what they like, from Python and from C, also in processes that they
    start: a program that reads the answer would find it in front of it.
    """
    if sys.stdout is None or sys.stderr is None:  # closed by the caller: their descriptors may be of other files by now
        yield
        return
    sys.stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # what C has not written yet
        os.dup2(own, 1)
        os.close(own)
