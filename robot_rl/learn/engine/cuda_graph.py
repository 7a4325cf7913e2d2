"""Recordings as CUDA graphs: on a GPU, launching is most of the time of a small network.

Of a whole high-UTD update, and of a frozen network. They work on the tensors that a function reads and fills, whatever
the function computes.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from robot_rl.learn.algorithms.batch import Batch

WARM_UPS = 3
"""Calls made in the plain way first: libraries choose their kernels then."""

Update = Callable[[Batch], dict[str, Tensor]]


class CapturedUpdate:
    """Calls `update` in the plain way a few times, then records it, and from then on replays the recording.

    The recording works on the memory of what it was recorded with. When other tensors take the
    place of parameters or optimizer state, e.g. from a checkpoint, make a new `CapturedUpdate`.

    Args:
        update: Changes its tensors in place, makes no decision that depends on their values, and draws random numbers
            only from `generator`.
        generator: On a CUDA device.
    """

    def __init__(self, update: Update, generator: torch.Generator) -> None:
        self._update, self._generator = update, generator
        self._stream = torch.cuda.Stream(generator.device)  # type: ignore[no-untyped-call]
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: Batch
        self._outputs: dict[str, Tensor]

    def __call__(self, batch: Batch) -> dict[str, Tensor]:
        """Run `update` on a batch, of the same shapes each time."""
        self._calls += 1
        if self._calls <= WARM_UPS:
            return self._beside(batch)
        graph = self._graph or self._record(batch)
        for kept, given in zip(self._inputs, batch, strict=True):
            if kept is not None and given is not None:
                kept.copy_(given, non_blocking=True)
        graph.replay()
        return {name: value.clone() for name, value in self._outputs.items()}  # the next replay writes over them

    def _beside(self, batch: Batch) -> dict[str, Tensor]:
        """Call `update` in the plain way on the stream that records."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            logs = self._update(batch)
        torch.cuda.current_stream().wait_stream(self._stream)
        return logs

    def _record(self, batch: Batch) -> torch.cuda.CUDAGraph:
        """Record a call; nothing is computed."""
        self._inputs = Batch._make(None if column is None else column.clone() for column in batch)
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=self._stream):
            self._outputs = self._update(self._inputs)
        self._graph = graph
        return graph


class CapturedForward:
    """Calls a function of one tensor: in the plain way a few times, then as a recording, one for each shape.

    Args:
        forward: Needs no gradient, draws no random numbers, and makes no decision that depends on values.
    """

    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        self._forward = forward
        self._recordings: dict[torch.Size, tuple[torch.cuda.CUDAGraph, Tensor, Tensor]] = {}

    @torch.no_grad()
    def __call__(self, x: Tensor) -> Tensor:
        """Compute `forward` of a tensor on a CUDA device."""
        if x.shape not in self._recordings:
            self._recordings[x.shape] = self._record(x)
        graph, given, result = self._recordings[x.shape]
        given.copy_(x)
        graph.replay()
        return result.clone()  # the next replay writes over it

    def _record(self, x: Tensor) -> tuple[torch.cuda.CUDAGraph, Tensor, Tensor]:
        """Record a call; return the graph, its input and its result."""
        given, graph = x.clone(), torch.cuda.CUDAGraph()
        stream = torch.cuda.Stream(x.device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(x.device))
        with torch.cuda.stream(stream):
            for _ in range(WARM_UPS):
                self._forward(given)
        torch.cuda.synchronize(x.device)
        # A learner in another thread may go on meanwhile.
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            result = self._forward(given)
        return graph, given, result
