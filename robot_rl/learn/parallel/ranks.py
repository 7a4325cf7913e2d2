"""Several processes that learn as one: each computes with its part of a batch, all make the same steps.

The gradient of a mean over a batch is the mean of the gradients of its equal parts. So processes that begin with the
same parameters, average their gradients before every step, and draw the same random numbers for the whole batch stay
equal, and learn what one process would learn from the whole batch, but for rounding.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from robot_rl.errors import LinkError

LIMIT = timedelta(seconds=120)
"""For which the processes wait for each other in one step."""


class Ranks:
    """This process alone: nothing is divided, nothing is exchanged.

    Attributes:
        rank: Number of this process, from 0.
        size: How many there are.
    """

    rank, size = 0, 1

    def __deepcopy__(self, memo: dict[int, Any]) -> Ranks:
        """Return itself: a copy of what it belongs to belongs to the same process."""
        return self

    def own(self, whole: Tensor) -> Tensor:
        """Return this process's part of the rows of a batch, (..., rows, n) -> (..., rows / size, n)."""
        return whole

    def average(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Return the means of tensors over all processes, which call it with tensors of the same shapes.

        Raises:
            LinkError: if another process is gone.
        """
        return list(tensors)

    def agree(self, tensors: Sequence[Tensor]) -> None:
        """Set tensors, in place, to what they are in the process of rank 0; raises as `average`."""

    def deviation(self, values: Tensor) -> Tensor:
        """Return the standard deviation of all values of a batch, of which these are this process's part; a scalar."""
        return values.std(unbiased=False)

    def source(self, rng: np.random.Generator) -> np.random.Generator:
        """Return where this process draws its samples from, given a generator that is the same in all of them."""
        return rng

    def close(self) -> None:
        """Leave the others."""


ALONE = Ranks()


class DistributedRanks(Ranks):
    """One of several processes, connected by torch.distributed: gloo on a CPU, NCCL on GPUs.

    It listens on the loopback device, unless `GLOO_SOCKET_IFNAME` or `NCCL_SOCKET_IFNAME` names another one. The
    processes find each other by a file.

    Args:
        rank: Number of this process.
        size: How many there are.
        meeting: A file that does not exist yet, the same for all of them.
        device: Where they compute.

    Raises:
        LinkError: if the others do not come.
    """

    def __init__(self, rank: int, size: int, meeting: Path, device: str) -> None:
        self.rank, self.size = rank, size
        loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
        for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(variable, loopback)
        backend = "nccl" if device == "cuda" else "gloo"
        try:
            where = f"file://{meeting}"
            dist.init_process_group(backend, init_method=where, rank=rank, world_size=size, timeout=LIMIT)
        except RuntimeError as error:
            raise _gone(error) from error

    def own(self, whole: Tensor) -> Tensor:
        """See `Ranks.own`."""
        return whole.chunk(self.size, -2)[self.rank]

    def average(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """See `Ranks.average`; all of them cross in one message."""
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        try:
            dist.all_reduce(flat)
        except RuntimeError as error:
            raise _gone(error) from error
        parts = torch.split(flat / self.size, [tensor.numel() for tensor in tensors])
        return [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]

    def agree(self, tensors: Sequence[Tensor]) -> None:
        """See `Ranks.agree`."""
        try:
            for tensor in tensors:
                dist.broadcast(tensor, 0)
        except RuntimeError as error:
            raise _gone(error) from error

    def deviation(self, values: Tensor) -> Tensor:
        """See `Ranks.deviation`."""
        (mean,) = self.average([values.mean()])
        (square,) = self.average([(values - mean).square().mean()])
        return square.sqrt()

    def source(self, rng: np.random.Generator) -> np.random.Generator:
        """See `Ranks.source`; it advances the common generator by one draw."""
        return np.random.default_rng((int(rng.integers(2**62)), self.rank))

    def close(self) -> None:
        """See `Ranks.close`."""
        if dist.is_initialized():
            dist.destroy_process_group()


def _gone(error: RuntimeError) -> LinkError:
    return LinkError(f"another process of the learner does not answer: {str(error).splitlines()[0]}")
