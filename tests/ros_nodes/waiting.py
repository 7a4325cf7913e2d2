"""Waiting for what other threads and processes do."""

import time

PATIENCE = 30.0
"""For a busy machine [s]."""


def eventually(condition, patience=PATIENCE):
    """Whether it comes true in this time [s]."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
