"""Makes the updates of an algorithm fast without a second copy of it: compiled steps, bfloat16 products, CUDA graphs.

It uses the interface of `Algorithm` alone: `transform_steps`, `capturable`, `update`, and the generator of the policy.
What costs no clarity is done in the algorithms themselves: stacked ensembles, fused optimizers, one gather for all
minibatches of a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from robot_rl.config.components import EngineConfig
from robot_rl.learn.algorithms.base import Algorithm
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.engine.cuda_graph import CapturedUpdate, Update
from robot_rl.learn.engine.hardware import computed_in, keep_freed_memory

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Engine:
    """Runs the updates of an algorithm.

    Args:
        algorithm: The algorithm; its step functions are replaced where they are to be compiled.
        config: What is done to make it fast.
    """

    def __init__(self, algorithm: Algorithm, config: EngineConfig) -> None:
        self._algorithm, self._generator = algorithm, algorithm.policy.generator
        self._device = self._generator.device.type
        self._low_precision = computed_in(config.precision, self._device) == torch.bfloat16
        self._capture = config.capture and algorithm.capturable and self._device == "cuda"
        if self._device == "cpu":
            keep_freed_memory()
        if config.compile:
            # Loss, gradient, optimizer and targets become one graph; several, where torch is too old to know of it.
            if hasattr(torch._dynamo.config, "trace_autograd_ops"):
                torch._dynamo.config.trace_autograd_ops = True
            algorithm.transform_steps(_compiled)
        self.restart()

    def restart(self) -> None:
        """Forget where the tensors of the algorithm lie; call it after the algorithm has loaded a state."""
        self._count = 0  # minibatches of the newest call
        self._run: Update = CapturedUpdate(self._plain, self._generator) if self._capture else self._plain

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Run `Algorithm.update` on a batch; another number of minibatches needs another recording."""
        if self._capture and len(batch.reward) != self._count:
            self.restart()
        self._count = len(batch.reward)
        return self._run(batch)

    def _plain(self, batch: Batch) -> dict[str, Tensor]:
        # Without its cache, which would give later minibatches the parameters of the first one.
        with torch.autocast(self._device, torch.bfloat16, enabled=self._low_precision, cache_enabled=False):
            return self._algorithm.update(batch)


def _compiled(step: Callable[_P, _R], /) -> Callable[_P, _R]:
    """Compile a step function for the shapes that it is called with."""
    return torch.compile(step, dynamic=False)
