"""The base of a residual policy, cloned from demonstrations before the first online step.

It is a policy of its own, with a head of its own, and stays as it is afterwards: only the correction learns online.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from robot_rl.errors import ConfigError
from robot_rl.learn.algorithms.adam import Adam
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.bc import cloning_loss
from robot_rl.learn.algorithms.losses import mean_of
from robot_rl.learn.networks.networks import Policy


class BaseCloning:
    """The updates of a base.

    Args:
        policy: The policy whose base is trained.
        learning_rate: Of Adam; a scalar on the policy's device may change between the steps.

    Raises:
        ConfigError: if it has none.
    """

    def __init__(self, policy: Policy, learning_rate: float | Tensor) -> None:
        if policy.base is None:
            raise ConfigError("there is no base to clone; set base.kind=clone")
        self._policy, self._base, self._updates = policy, policy.base, 0
        self._optimizer = Adam(self._base.parameters(), learning_rate)

    def update(self, batch: Batch) -> dict[str, Tensor]:
        """Make one step down `cloning_loss` on each of the N minibatches; return its mean over them.

        With the first one the base gets the standardisation of the policy's head as it is now, for good.
        """
        if self._updates == 0:
            self._base.head.load_state_dict(self._policy.head.state_dict())
        rows = []
        for n in range(len(batch.reward)):
            part = batch.minibatch(n)
            loss = cloning_loss(self._base, part.observation, part.action, part.images)
            self._optimizer.minimize(loss, allow_unused=True)
            rows.append(loss.detach())
        self._updates += len(rows)
        return {"cloning_loss": mean_of(rows)}

    def conclude(self) -> None:
        """Do nothing: the base is the newest one."""

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that the next update depends on, but for the policy."""
        return copy.deepcopy({"optimizer": self._optimizer.state_dict(), "updates": self._updates})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        self._optimizer.load_state_dict(state["optimizer"])
        self._updates = int(state["updates"])
