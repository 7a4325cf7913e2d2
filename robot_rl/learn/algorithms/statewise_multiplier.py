"""How strongly what an operator did is imitated, state by state: as far as the operator does much the same there.

The policy is held to max E Q(s, a) subject to E |a - mu_E(s)|^2 <= tr Sigma_E(s) wherever an operator has acted: no
farther from the operator's mean than the operator. A Lagrange multiplier per state makes it one problem, as in SiLRI
(Zhao 2025, 2512.24288): it rises by gradient where the bound is broken, and falls where it is kept. So an operator who
is sure is followed, and one whose actions contradict each other leaves the choice to the critics.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from robot_rl.learn.algorithms.losses import mean_over, shown_steps
from robot_rl.learn.algorithms.trained_modules import TrainedModules
from robot_rl.learn.networks.networks import Policy, StackedMLP

HIDDEN = (128, 128)
LEARNING_RATE = 1e-3
"""Larger than the policy's: there is one step for several of the critics."""
LEAST_DEVIATION, MOST_DEVIATION = 0.03, 1.0
"""Of one element of the operator's action, in [-1, 1]."""
FIRST = 2.0
"""Logit of all multipliers at first, 0.88: as long as nothing is known, demonstrations are imitated."""


class StatewiseMultiplier(TrainedModules):
    """The operator's mean and deviation in a state, and the multiplier there, from what the head makes of the state.

    Args:
        policy: Whose head sees, and what is held to the operator; its generator makes the parameters.
    """

    def __init__(self, policy: Policy) -> None:
        size, actions, generator = policy.head.size, policy.continuous_size, policy.generator
        self._ranks, self._length = policy.ranks, policy.chunk.length
        self._operator = StackedMLP(1, size, HIDDEN, 2 * actions, generator)
        self._multiplier = StackedMLP(1, size, HIDDEN, 1, generator)
        super().__init__({"operator": self._operator, "multiplier": self._multiplier}, LEARNING_RATE, policy.ranks)

    def learn(self, latent: Tensor, actions: Tensor, demonstrated: Tensor, counts: Tensor) -> Tensor:
        """Make one step on a minibatch; return the multipliers in its states, in [0, 1], shape (B,).

        Args:
            latent: What the head makes of the states, shape (B, size).
            actions: a, drawn from the policy, shape (B, h n).
            demonstrated: a_E, what was done, as `actions`.
            counts: How many of a row's h actions, from the first one on, an operator did, shape (B,).
        """
        latent, actions = latent.detach(), actions.detach()
        mean, log_deviation = self._operator(latent)[0].to(actions.dtype).chunk(2, -1)
        low, high = math.log(LEAST_DEVIATION), math.log(MOST_DEVIATION)
        log_deviation = low + (high - low) * log_deviation.sigmoid()
        multiplier = (FIRST + self._multiplier(latent)[0].squeeze(-1).to(actions.dtype)).sigmoid()

        shown = shown_steps(counts, self._length).repeat_interleave(actions.shape[-1] // self._length, -1)
        likely = ((demonstrated - mean) / log_deviation.exp()).square() / 2 + log_deviation
        with torch.no_grad():
            beyond = (actions - mean).square() - (2 * log_deviation).exp()
        rows = (counts > 0).to(actions.dtype)
        wrong = mean_over((likely * shown).sum(-1), rows, self._ranks)
        kept = mean_over(multiplier * (beyond * shown).sum(-1), rows, self._ranks)
        self._optimizer.minimize(wrong - kept)
        return multiplier.detach()
