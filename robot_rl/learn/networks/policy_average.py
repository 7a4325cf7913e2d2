"""The policy that is deployed: a running mean of the one that learns, which evens out the last few updates."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch

from robot_rl.learn.networks.networks import Policy


def newest_weight(share: float, count: int) -> float:
    """Return the weight of the newest parameters in a mean over the newest `share` of `count`; 1 if the share is 0."""
    return 1.0 / max(1.0, share * count)


class PolicyAverage:
    """Mean of a policy's parameters over the newest part of its learning, a share that grows with it.

    Polyak's mean (Polyak and Juditsky 1992) with polynomially fading memory (Shamir and Zhang 2013): after n steps the
    weight of the newest parameters is 1 / (share n), so a short run forgets its beginnings as a long one does.

    Args:
        policy: The policy that learns.
        share: The newest share of all calls of `follow` that the mean covers, 0 to 1; 0 takes the newest policy.
    """

    def __init__(self, policy: Policy, share: float) -> None:
        self.policy = copy.deepcopy(policy).requires_grad_(False)
        """The mean; its parameters change only inside `follow` and `load_state_dict`."""
        self._newest, self._share, self._followed = policy, share, 0

    @torch.no_grad()
    def follow(self) -> None:
        """Include the present parameters of the policy in the mean."""
        self._followed += 1
        weight = newest_weight(self._share, self._followed)
        torch._foreach_lerp_(list(self.policy.parameters()), list(self._newest.parameters()), weight)
        for mine, newest in zip(self.policy.buffers(), self._newest.buffers(), strict=True):
            mine.copy_(newest)  # how features are standardised is settled once

    @torch.no_grad()
    def restart(self) -> None:
        """Set the mean to the policy as it is now."""
        self._followed = 0
        self.policy.load_state_dict(self._newest.state_dict())

    def state_dict(self) -> dict[str, Any]:
        """Return a copy, on the CPU, of all that the next mean depends on."""
        return {"policy": self.policy.policy_state(), "followed": self._followed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` returned.

        Raises:
            CheckpointError: if it is another policy's.
        """
        self.policy.load_policy_state(state["policy"])
        self._followed = int(state["followed"])
