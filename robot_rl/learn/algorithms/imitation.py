"""Imitation of what counts as a demonstration, beside what critics expect: of actions and of choices."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from robot_rl.config.components import SACConfig
from robot_rl.learn.algorithms import losses
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.scheduled_values import ScheduledValues
from robot_rl.learn.networks.networks import Policy

CHOICE_MARGIN = 0.1
"""By which another choice is worth less than the demonstrated one, as a share of the size of returns."""


class Imitation:
    """The terms of `sac.imitation` in the losses of policy and critics.

    Both follow the size of the returns: their range or, where that is not known, what critics expect (Fujimoto and Gu
    2021, eq. 5), so that a weight means the same for rewards of any scale.

    Args:
        weight: w, of both terms.
        return_range: Smallest and largest return; None: not known.
        policy: What imitates.
        rule: What is left out where critics expect less of it than of the policy's actions, as `sac.imitated`.
    """

    def __init__(
        self,
        weight: float | Tensor,
        return_range: tuple[float, float] | None,
        policy: Policy,
        *,
        rule: str = "demonstrated",
    ) -> None:
        self._weight, self._ranks, self._continuous = weight, policy.ranks, policy.continuous_size
        self._length, self._rule = policy.chunk.length, rule
        self._range = None if return_range is None else return_range[1] - return_range[0]

    def of_actions(self, actions: Tensor, values: Tensor, batch: Batch, expected: Callable[[Tensor], Tensor]) -> Tensor:
        """Return w r mean_b |a - a_E|^2 in one minibatch, where r is the size of the returns.

        The mean over what the policy draws is the square of its bias plus its variance: so noise becomes small, too,
        where the way is known, and what is played while it imitates succeeds often enough for critics to learn from.

        With `better` what critics expect less of than of the policy is left out (the Q-filter of Nair et al. 2018,
        Overcoming exploration in reinforcement learning with demonstrations), with `helpful` corrections alone are.

        Args:
            actions: a, drawn from the policy, shape (B, n).
            values: What critics expect of them, shape (E, B).
            batch: The minibatch.
            expected: Returns what critics expect of other actions in its states, as `values`.
        """
        if batch.demonstrated is None:
            return actions.new_zeros(())
        done, counts = batch.action[:, : self._continuous], batch.demonstrated
        if self._rule != "demonstrated":
            with torch.no_grad():
                kept = expected(done).mean(0) >= values.mean(0)
                if self._rule == "helpful" and batch.corrected is not None:
                    kept = kept | (batch.corrected == 0)
                counts = counts * kept
        away = losses.imitation_loss(actions, done, counts, self._ranks, self._length)
        return self._weight * self._size(values) * away

    def of_choices(self, values: Tensor, made: Tensor, batch: Batch) -> Tensor:
        """Return w sum_i mean_b (max_g (Q_i(s, g) + m 1(g != g_E)) - Q_i(s, g_E)), see `demonstrated_choice_loss`."""
        if batch.demonstrated is None:
            return values.new_zeros(())
        margin = CHOICE_MARGIN * self._size(values)
        counts = ((batch.demonstrated > 0) & batch.action[:, -1].isfinite()).float()  # NaN: not held for its chunk
        return self._weight * losses.demonstrated_choice_loss(values, made, counts, margin, self._ranks)

    def _size(self, values: Tensor) -> Tensor | float:
        return values.detach().abs().mean() if self._range is None else self._range


def make_imitation(
    config: SACConfig, return_range: tuple[float, float] | None, policy: Policy, scheduled: ScheduledValues
) -> Imitation | None:
    """Return what the settings want imitated; None: nothing."""
    if config.imitation == 0.0:
        return None
    weight = scheduled.follow("imitation", config.imitation)
    return Imitation(weight, return_range, policy, rule=config.imitated)
