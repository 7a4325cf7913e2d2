"""Makes the readable algorithm fast without a second copy of it: compiled steps, products in bfloat16, CUDA graphs.

It knows how `SAC.update` runs; it does not know what it computes. What is always done, because it costs no clarity, is
done in the algorithm itself: stacked ensembles, fused optimizers, one gather for all minibatches of a call.
"""

from __future__ import annotations

import torch
from torch import Tensor

from robot_rl.config.components import EngineConfig
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.sac import SAC
from robot_rl.learn.engine.cuda_graph import CapturedUpdate, Update
from robot_rl.learn.engine.hardware import computed_in, keep_freed_memory


class Engine:
    """Runs the updates of a learner.

    Args:
        sac: The algorithm.
        config: What is done to make it fast.
    """

    def __init__(self, sac: SAC, config: EngineConfig) -> None:
        self._sac, self._device = sac, sac.generator.device.type
        self._low_precision = computed_in(config.precision, self._device) == torch.bfloat16
        self._capture = config.capture and self._device == "cuda"
        if self._device == "cpu":
            keep_freed_memory()
        if config.compile:
            # Loss, gradient, optimizer and targets become one graph; several, where torch is too old to know of it.
            if hasattr(torch._dynamo.config, "trace_autograd_ops"):
                torch._dynamo.config.trace_autograd_ops = True
            sac.look_ahead = torch.compile(sac.look_ahead, dynamic=False)
            sac.step_critics = torch.compile(sac.step_critics, dynamic=False)
            sac.step_actor = torch.compile(sac.step_actor, dynamic=False)
        self.restart()

    def restart(self) -> None:
        """To be called after the learner has loaded a state: forgets where its tensors were."""
        self._run: Update = CapturedUpdate(self._plain, self._sac.generator) if self._capture else self._plain

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """As `SAC.update`."""
        done = self._sac.critic_updates + len(batch.reward)
        logs = self._run(batch)
        self._sac.critic_updates = done  # a replayed graph does not count
        return logs

    def _plain(self, batch: Batch) -> dict[str, Tensor]:
        # Without its cache, which would give later minibatches the parameters of the first one.
        with torch.autocast(self._device, torch.bfloat16, enabled=self._low_precision, cache_enabled=False):
            return self._sac.update(batch)
