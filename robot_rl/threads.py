"""How many threads torch computes with."""

from __future__ import annotations


def one_thread() -> None:
    """Two torch threads on two busy cores are slower than one."""
    import torch  # here, as it takes seconds to import, and commands that compute nothing shall not wait for it

    torch.set_num_threads(1)
