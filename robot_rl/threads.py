"""How many threads torch computes with, and who on a machine goes first: control, then learning, then labelling."""

from __future__ import annotations

import os

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
