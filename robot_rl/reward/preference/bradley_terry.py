"""A reward learned from preferences: an ensemble in which P(a over b) = sigmoid(r(a) - r(b)) (Bradley and Terry 1952).

Some answers are taken to be given at random (Christiano 2017), so that one that is wrong cannot outweigh all others.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from robot_rl.errors import DataError, DivergedError
from robot_rl.learn.algorithms.adam import Adam
from robot_rl.learn.networks.networks import StackedMLP

CHECKS = 40
"""Number of times that the held-out loss is measured, in equal parts of the fit."""
FEWEST_PAIRS = 20
LEAST_SPREAD = 1e-6
LAPSES = 0.2
"""Share of the answers that are taken to be given at random, one way or the other."""


@dataclass(frozen=True)
class FitInfo:
    """Figures of a fit.

    Attributes:
        pairs: Decided pairs and ties that it was fitted to.
        held_out: Pairs that it was not fitted to, by which it was stopped.
        loss: Mean cross-entropy on the held-out pairs; ln 2 = 0.69 is chance, -ln(1 - `LAPSES` / 2) the least.
        accuracy: Share of the held-out pairs that are decided and are predicted so; None if none is decided.
    """

    pairs: int
    held_out: int
    loss: float
    accuracy: float | None


def preference_loss(logits: Tensor, value: Tensor) -> Tensor:
    """Return each answer's cross-entropy, -v log p - (1 - v) log(1 - p), p = L / 2 + (1 - L) sigmoid(logit).

    L is `LAPSES`.

    Args:
        logits: Difference of the rewards of two moments, any shape.
        value: 1 where the first is preferred, 0 where the second is, 0.5 for a tie; of the same shape.
    """
    first, second = (LAPSES / 2 + (1 - LAPSES) * torch.sigmoid(side) for side in (logits, -logits))
    return -value * first.log() - (1 - value) * second.log()


class RewardEnsemble:
    """Networks that share nothing and see resampled pairs; their disagreement shows what is not known.

    Args:
        inputs: Length of the features of a moment.
        generator: Source of all randomness; its device is the ensemble's.
        members: How many.
        hidden_sizes: Widths of the hidden layers.
    """

    def __init__(
        self, inputs: int, generator: torch.Generator, *, members: int = 5, hidden_sizes: tuple[int, ...] = (128, 128)
    ) -> None:
        self._network = StackedMLP(members, inputs, hidden_sizes, 1, generator)
        self._generator, self._inputs = generator, inputs
        self._mean = torch.zeros(inputs, device=generator.device)
        self._deviation = torch.ones(inputs, device=generator.device)

    def fit(
        self,
        first: Tensor,
        second: Tensor,
        value: Tensor,
        *,
        steps: int = 2000,
        batch_size: int = 128,
        learning_rate: float = 3e-4,
        held_out: float = 0.2,
    ) -> FitInfo:
        """Fit the members to P pairs, and keep the parameters of least loss on the held-out ones.

        Args:
            first: Features of one moment, shape (P, inputs); or of the moments of a segment, (P, rows, inputs), whose
                reward is the mean of theirs.
            second: Of the other, of the same shape.
            value: 1 where the first is preferred, 0 where the second is, 0.5 for a tie; shape (P,).
            steps: Gradient steps.
            batch_size: Pairs per member and step.
            learning_rate: Of Adam.
            held_out: Share of the pairs to stop by.

        Raises:
            DataError: if there are too few pairs, or shapes do not fit.
            DivergedError: if no loss was finite.
        """
        count = len(value)
        if first.ndim == 2:
            first, second = first[:, None], second[:, None]
        if first.shape != (count, first.shape[1], self._inputs) or second.shape != first.shape:
            raise DataError(f"pairs of shapes {tuple(first.shape)} and {tuple(second.shape)}, {count} values")
        if count < FEWEST_PAIRS:
            raise DataError(
                f"{count} readable pairs are too few for a reward; label at least {FEWEST_PAIRS}, set pairs"
            )
        both = torch.cat([first, second]).flatten(0, 1)
        self._mean, self._deviation = both.mean(0), both.std(0).clamp(min=1e-6)
        order = torch.randperm(count, generator=self._generator)
        validating, training = order[: max(1, round(held_out * count))], order[max(1, round(held_out * count)) :]
        members = self._network.members
        # Each member draws from its own resample of the pairs (Breiman 1996).
        bags = training[torch.randint(len(training), (members, len(training)), generator=self._generator)]
        place = torch.empty_like(order)
        place[training] = torch.arange(len(training), device=order.device)
        few = len(training) <= batch_size
        known = [side[training].expand(members, -1, -1, -1) for side in (first, second)]
        optimizer = Adam(self._network.parameters(), learning_rate)
        best_loss, best_state = math.inf, self._network.state_dict()
        interval = max(1, steps // CHECKS)
        for step in range(1, steps + 1):
            draw = torch.randint(len(training), (members, batch_size), generator=self._generator)
            picked = bags.gather(1, draw)
            # Where there are few, each pair is drawn several times, and computed once.
            logits = (
                self._logits(*known).gather(1, place[picked]) if few else self._logits(first[picked], second[picked])
            )
            optimizer.minimize(preference_loss(logits, value[picked]).mean(1).sum())
            if step % interval == 0 or step == steps:
                checked = self._check(first[validating], second[validating], value[validating])[0]
                if checked < best_loss:
                    best_loss, best_state = checked, copy.deepcopy(self._network.state_dict())
        if not math.isfinite(best_loss):
            raise DivergedError(f"the reward left the finite numbers; lower learning_rate {learning_rate}")
        self._network.load_state_dict(best_state)
        loss_there, accuracy = self._check(first[validating], second[validating], value[validating])
        return FitInfo(count, len(validating), loss_there, accuracy)

    @torch.no_grad()
    def __call__(self, features: Tensor) -> Tensor:
        """Return the reward of moments, (N, inputs) -> (N,): mean over the members. Its zero and unit are arbitrary."""
        return self._each(features.expand(self._network.members, *features.shape)).mean(0)

    @torch.no_grad()
    def disagreement(self, features: Tensor) -> Tensor:
        """Return the standard deviation over the members, each in its own units, (N, inputs) -> (N,)."""
        each = self._each(features.expand(self._network.members, *features.shape))
        spread = each.std(1, keepdim=True).clamp(min=LEAST_SPREAD)
        return ((each - each.mean(1, keepdim=True)) / spread).std(0)

    @torch.no_grad()
    def pair_disagreement(self, first: Tensor, second: Tensor) -> Tensor:
        """Return the standard deviation over the members of P(first is preferred), (P, rows, inputs) -> (P,).

        Where it is large, an answer teaches most (Lee 2021, PEBBLE).
        """
        each = [side.expand(self._network.members, *side.shape) for side in (first, second)]
        return torch.sigmoid(self._logits(*each)).std(0)

    def _logits(self, first: Tensor, second: Tensor) -> Tensor:
        """Compute each member's logit of first over second, both (members, P, rows, inputs), -> (members, P)."""
        rewards = self._of_segments(torch.cat([first, second], 1))
        return rewards[:, : first.shape[1]] - rewards[:, first.shape[1] :]

    def _of_segments(self, features: Tensor) -> Tensor:
        """Compute each member's reward of segments, (members, P, rows, inputs) -> (members, P): mean over the rows."""
        return self._each(features.flatten(1, 2)).view(features.shape[:3]).mean(-1)

    def _each(self, features: Tensor) -> Tensor:
        """Compute the reward of each member, (members, N, inputs) -> (members, N)."""
        return self._network.each((features - self._mean) / self._deviation).squeeze(-1)

    @torch.no_grad()
    def _check(self, first: Tensor, second: Tensor, value: Tensor) -> tuple[float, float | None]:
        """Return loss and accuracy of the ensemble's mean on pairs."""
        each = [side.expand(self._network.members, *side.shape) for side in (first, second)]
        logits = self._logits(*each).mean(0)
        loss = float(preference_loss(logits, value).mean())
        decided = value != 0.5
        if not decided.any():
            return loss, None
        return loss, float(((logits > 0) == (value > 0.5))[decided].float().mean())
