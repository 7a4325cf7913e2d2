"""Two meanings of the outputs of a critic: the return itself, or a histogram over returns."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from robot_rl.config.components import SACConfig
from robot_rl.errors import ConfigError
from robot_rl.learn.algorithms.losses import critic_loss, histogram_loss

BINS = 51
"""Of the histogram between the smallest and the largest return."""
MARGIN = 3
"""Bins beyond either end, so that a return at the end is not cut off."""
SIGMA = 0.75
"""Standard deviation of the Gaussian, in bins (Farebrother 2024, section 3.1)."""


class CriticOutputs(Protocol):
    """Reads and trains the outputs of E critics."""

    count: int
    """Outputs of a critic."""

    def value(self, outputs: Tensor) -> Tensor:
        """Return Q, (E, B, count) -> (E, B)."""
        ...

    def loss(self, outputs: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the loss of outputs (E, B, count) against y (B,): a sum over the critics of means over the batch.

        Rows count by their weight (B,); None: all alike.
        """
        ...


class Scalar:
    """One output, the return, trained by the squared error."""

    count = 1

    def value(self, outputs: Tensor) -> Tensor:
        """Return Q itself."""
        return outputs.squeeze(-1).float()

    def loss(self, outputs: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return sum_i mean_b w (Q_i - y)^2."""
        return critic_loss(self.value(outputs), target, weight)


class HLGauss(nn.Module):
    """Logits of a histogram over returns, trained by cross-entropy (HL-Gauss; Farebrother 2024, "Stop Regressing").

    Args:
        return_range: Smallest and largest return.
        device: Where the critics are.
    """

    def __init__(self, return_range: tuple[float, float], device: torch.device) -> None:
        super().__init__()
        low, high = return_range
        width = (high - low) / BINS
        self.count, self._sigma = BINS + 2 * MARGIN, SIGMA * width
        edges = torch.linspace(low - MARGIN * width, high + MARGIN * width, self.count + 1, device=device)
        self.register_buffer("edges", edges)
        self.register_buffer("centres", (edges[1:] + edges[:-1]) / 2)
        self.edges: Tensor
        self.centres: Tensor

    def value(self, outputs: Tensor) -> Tensor:
        """Return the mean of the histogram, Q = sum_k softmax(l)_k z_k."""
        # No matrix product: where those are in bfloat16, Q would be rounded to 8 bits.
        return (outputs.float().softmax(-1) * self.centres).sum(-1)

    def loss(self, outputs: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return - sum_i mean_b w sum_k p_k(y) log softmax(l_i)_k."""
        return histogram_loss(self.histogram(target), outputs.float(), weight)

    def histogram(self, target: Tensor) -> Tensor:
        """Return the share of a Gaussian about y (B,) in each bin, p_k ~ Phi(e_{k+1}) - Phi(e_k); (B, count)."""
        below = torch.erf((self.edges - target.unsqueeze(-1)) / (math.sqrt(2) * self._sigma))
        return below.diff(dim=-1) / (below[:, -1:] - below[:, :1])


def make_critic_outputs(
    config: SACConfig, return_range: tuple[float, float] | None, device: torch.device
) -> CriticOutputs:
    """Make the outputs that `critic_loss` of the configuration names.

    Raises:
        ConfigError: if a histogram is wanted over a range that is not known.
    """
    if config.critic_loss == "squared":
        return Scalar()
    if return_range is None:
        raise ConfigError(
            "sac.critic_loss=hl_gauss needs the range of returns, which the environment does not declare; set "
            "environment.return_range=[low, high], or sac.critic_loss=squared"
        )
    return HLGauss(return_range, device)
