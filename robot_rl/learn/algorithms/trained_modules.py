"""Networks beside those of policy and critics, with an optimizer of their own, as one part of a checkpoint."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from torch import nn

from robot_rl.learn.algorithms.adam import Adam
from robot_rl.learn.networks.parameters import load_modules
from robot_rl.learn.parallel.ranks import ALONE, Ranks


class TrainedModules:
    """Networks that one loss trains, by `self._optimizer`.

    Args:
        modules: By their names in the checkpoint.
        learning_rate: Of the steps.
        ranks: The processes whose mean gradient is followed.
    """

    def __init__(self, modules: Mapping[str, nn.Module], learning_rate: float, ranks: Ranks = ALONE) -> None:
        self._modules = dict(modules)
        parameters = [parameter for module in self._modules.values() for parameter in module.parameters()]
        self._optimizer = Adam(parameters, learning_rate, ranks)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next step depends on."""
        modules = {name: module.state_dict() for name, module in self._modules.items()}
        return copy.deepcopy({"modules": modules, "optimizer": self._optimizer.state_dict()})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned; raises as `load_modules`."""
        load_modules(self._modules, state["modules"])
        self._optimizer.load_state_dict(state["optimizer"])
