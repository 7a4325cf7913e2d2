"""Imitation of what counts as a demonstration, beside what critics expect: of actions and of choices."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from robot_rl.config.components import SACConfig
from robot_rl.learn.algorithms import losses
from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.horizon import USUAL_STEPS, horizon_imitation
from robot_rl.learn.algorithms.scheduled_values import ScheduledValues
from robot_rl.learn.algorithms.statewise_multiplier import StatewiseMultiplier
from robot_rl.learn.networks.networks import Policy

CHOICE_MARGIN = 0.1
"""By which another choice is worth less than the demonstrated one, as a share of the size of returns."""

MOST_DEVIATIONS = 3.0
"""By which an action may be better than others: none has a weight of more than 20."""


class Imitation:
    """The terms of `sac.imitation` in the losses of policy and critics.

    Both follow the size of the returns: their range or, where that is not known, what critics expect (Fujimoto and Gu
    2021, eq. 5), so that a weight means the same for rewards of any scale.

    Args:
        weight: w, of both terms.
        return_range: Smallest and largest return; None: not known.
        policy: What imitates.
        rule: Which of the actions are imitated, and how strongly, as `sac.imitated`.

    Attributes:
        multiplier: With the rule `certain`: how strongly in which state.
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
        self.multiplier = StatewiseMultiplier(policy) if rule == "certain" else None

    def of_actions(
        self, actions: Tensor, values: Tensor, batch: Batch, latent: Tensor, expected: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """Return w r mean_b u_b |a - a_E|^2 in one minibatch, where r is the size of the returns.

        The mean over what the policy draws is the square of its bias plus its variance: so noise becomes small, too,
        where the way is known, and what is played while it imitates succeeds often enough for critics to learn from.

        With `better` what critics expect less of than of the policy is left out (the Q-filter of Nair et al. 2018,
        Overcoming exploration in reinforcement learning with demonstrations), with `helpful` corrections alone are.
        With `advantage` u ~ exp((Q(s, a_E) - Q(s, a)) / sigma), sigma the deviation of this advantage and 1 the mean of
        u (Nair 2020, AWAC); with `certain` it is the `StatewiseMultiplier`, which learns here. Otherwise it is 1.

        Args:
            actions: a, drawn from the policy, shape (B, n).
            values: What critics expect of them, shape (E, B).
            batch: The minibatch.
            latent: What the head makes of its states, shape (B, size).
            expected: Returns what critics expect of other actions in its states, as `values`.
        """
        if batch.demonstrated is None:
            return actions.new_zeros(())
        done, counts, weight = batch.action[:, : self._continuous], batch.demonstrated, None
        if self.multiplier is not None:
            weight = self.multiplier.learn(latent, actions, done, counts)
        elif self._rule != "demonstrated":
            with torch.no_grad():
                advantage = expected(done).mean(0) - values.mean(0)
                if self._rule == "advantage":
                    weight = self._by_advantage(advantage, (counts > 0).to(advantage.dtype))
                else:
                    kept = advantage >= 0
                    if self._rule == "helpful" and batch.corrected is not None:
                        kept = kept | (batch.corrected == 0)
                    counts = counts * kept
        away = losses.imitation_loss(actions, done, counts, self._ranks, self._length, weight)
        return self._weight * self._size(values) * away

    def _by_advantage(self, advantage: Tensor, rows: Tensor) -> Tensor:
        """Return the weights of rows (B,), 1 in the mean over those that count."""
        mean = losses.whole_mean(advantage, rows, self._ranks)
        deviation = losses.whole_mean((advantage - mean).square(), rows, self._ranks).sqrt()
        weight = ((advantage - mean) / deviation.clamp_min(1e-6)).clamp_max(MOST_DEVIATIONS).exp()
        return weight / losses.whole_mean(weight, rows, self._ranks).clamp_min(1e-6)

    def of_choices(self, values: Tensor, made: Tensor, batch: Batch) -> Tensor:
        """Return w sum_i mean_b (max_g (Q_i(s, g) + m 1(g != g_E)) - Q_i(s, g_E)), see `demonstrated_choice_loss`.

        Whatever the rule, all demonstrated choices count: what critics expect of a choice is what they learn here.
        """
        if batch.demonstrated is None:
            return values.new_zeros(())
        margin = CHOICE_MARGIN * self._size(values)
        counts = ((batch.demonstrated > 0) & batch.action[:, -1].isfinite()).float()  # NaN: not held for its chunk
        return self._weight * losses.demonstrated_choice_loss(values, made, counts, margin, self._ranks)

    def _size(self, values: Tensor) -> Tensor | float:
        return losses.mean_size(values, self._ranks) if self._range is None else self._range


def make_imitation(
    config: SACConfig, return_range: tuple[float, float] | None, policy: Policy, scheduled: ScheduledValues
) -> Imitation | None:
    """Return what the settings want imitated; None: nothing."""
    if config.imitation == 0.0:
        return None
    setting = horizon_imitation(USUAL_STEPS) if config.imitation is None else config.imitation
    weight = scheduled.follow("imitation", setting)
    return Imitation(weight, return_range, policy, rule=config.imitated)
