"""How much less likely the outcome of a simulated step is on the robot, by two discriminators (H2O; Niu 2022).

One discriminator learns from (s, a, s') whether a step is the robot's, one from (s, a). By Bayes the ratio of their
odds is that of the two dynamics, P_robot(s' | s, a) / P_simulation(s' | s, a): where states and actions differ only
because the policies do, it is 1 (DARC, Eysenbach 2021). From pixels they judge by the state, proprioception, alone.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from robot_rl.learn.algorithms.batch import Batch
from robot_rl.learn.algorithms.trained_modules import TrainedModules
from robot_rl.learn.networks.networks import StackedMLP

NOISE = 0.1
"""Of that of the inputs: noise on what discriminators learn from, so that few steps are not learned by heart."""
SMOOTHING = 0.1
"""Of the labels: it bounds the odds. Where the state alone gives a step away, e.g. by the offset of a sensor, both
discriminators come to the same bound, and the ratio to 1: nothing is known of the dynamics there."""
LEAST_WEIGHT, LEAST_DEVIATION = 1e-3, 1e-4
HIDDEN = (64, 64)
LEARNING_RATE = 3e-4


class DynamicsGap(TrainedModules):
    """The discriminators, the weights of simulated steps, and what holds their values down.

    Args:
        state_size: Elements of a stacked state.
        action_size: Continuous elements of an action.
        penalty: Weight of what holds values down.
        generator: Source of parameters and noise; its device is theirs.
    """

    def __init__(self, state_size: int, action_size: int, penalty: float, generator: torch.Generator) -> None:
        self._penalty, self._generator, self._actions = penalty, generator, action_size
        self._seen = state_size + action_size
        self._before = StackedMLP(1, self._seen, HIDDEN, 1, generator)
        self._whole = StackedMLP(1, self._seen + state_size, HIDDEN, 1, generator)
        super().__init__({"before": self._before, "whole": self._whole}, LEARNING_RATE)

    def learn(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Make one step of the discriminators on a minibatch; return the log of the ratio of dynamics, and figures.

        The ratio has shape (B,). Figures: `gap_loss`, the mean of the two losses, log 2 where nothing can be told
        apart and 0.33 where all can; `simulated_weight`, the mean weight of simulated steps.
        """
        simulated = _column(batch.simulated)
        whole = self._inputs(batch)
        noise = torch.randn(whole.shape, generator=self._generator, device=self._generator.device)
        before, after = self._logits(whole + NOISE * noise)
        loss = (_balanced(before, simulated) + _balanced(after, simulated)) / 2
        self._optimizer.minimize(loss)
        with torch.no_grad():
            before, after = self._logits(whole)
        ratio = after - before
        weights = self.weights(ratio, simulated)
        mean = (weights * simulated).sum() / simulated.sum().clamp_min(1)
        return ratio, {"gap_loss": loss.detach(), "simulated_weight": mean}

    def weights(self, ratio: Tensor, simulated: Tensor) -> Tensor:
        """Return the weights of steps (B,): min(P_robot / P_simulation, 1) of simulated ones, 1 of the robot's."""
        return torch.where(simulated > 0, ratio.exp().clamp(LEAST_WEIGHT, 1.0), 1.0)

    def penalty(self, values: Tensor, ratio: Tensor, simulated: Tensor) -> Tensor:
        """Return w sum_i (log sum_sim omega exp Q_i - mean_robot Q_i), omega ~ the gap, which is -log ratio above 0.

        It is eq. 3 of H2O over one minibatch, and 0 where that has steps of one kind only.

        Args:
            values: Q of all critics, shape (E, B).
            ratio: As `learn` returns it, shape (B,).
            simulated: 1 where a step is simulated, shape (B,).
        """
        gap = (-ratio).clamp_min(1e-6) * simulated
        share = (gap / gap.sum().clamp_min(1e-6)).clamp_min(1e-12).log()
        high = torch.where(simulated > 0, values + share, -1e6).logsumexp(-1)
        real = 1 - simulated
        low = (values * real).sum(-1) / real.sum().clamp_min(1)
        both = (simulated.sum() > 0) & (real.sum() > 0)
        return self._penalty * torch.where(both, high - low, 0.0).sum()

    def _inputs(self, batch: Batch) -> Tensor:
        """Return s, a and s' - s, each element standardised over the minibatch."""
        change = _column(batch.following) - batch.observation
        whole = torch.cat([batch.observation, batch.action[:, : self._actions], change], -1)
        return (whole - whole.mean(0)) / whole.std(0, correction=0).clamp_min(LEAST_DEVIATION)

    def _logits(self, whole: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log odds that a step is the robot's, from (s, a) and from all of (s, a, s'), (B,) each."""
        before = self._before(whole[:, : self._seen])[0].squeeze(-1).float()
        return before, self._whole(whole)[0].squeeze(-1).float()


def _balanced(logits: Tensor, simulated: Tensor) -> Tensor:
    """Return the cross-entropy, in which both kinds of steps weigh the same however many there are."""
    real = 1 - simulated
    as_real, as_simulated = softplus(-logits), softplus(logits)
    smooth = SMOOTHING * (as_simulated - as_real)
    wrong_real = ((as_real + smooth) * real).sum() / real.sum().clamp_min(1)
    wrong_simulated = ((as_simulated - smooth) * simulated).sum() / simulated.sum().clamp_min(1)
    return (wrong_real + wrong_simulated) / 2


def _column(value: Tensor | None) -> Tensor:
    if value is None:
        raise ValueError("the batch does not tell which of its steps are simulated")
    return value
