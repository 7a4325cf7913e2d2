"""Standardisation of state elements whose scale nobody declared, by the moments of all that was seen.

The moments are part of the policy: what acts, learns and is deployed sees with the same ones (RSNorm; Lee 2025, SimBa).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

LIMIT = 10.0
"""Largest magnitude of a standardised element; what is further off is clipped."""
LEAST_DEVIATION = 1e-4


class StateScaling(nn.Module):
    """Scales the unscaled elements of a stacked state; the others pass as they are.

    Args:
        state_size: Elements of one row.
        unscaled: The elements to standardise, as pairs of the first and the one behind the last.
        history: Rows that are stacked.
        device: Where it computes.
    """

    def __init__(
        self, state_size: int, unscaled: Sequence[tuple[int, int]], history: int, device: torch.device
    ) -> None:
        super().__init__()
        chosen = np.zeros(state_size, bool)
        for start, stop in unscaled:
            chosen[start:stop] = True
        self._chosen, self._history = torch.from_numpy(chosen), history
        limit = torch.where(self._chosen, LIMIT, torch.inf).repeat(history)
        self.register_buffer("shift", torch.zeros(history * state_size, device=device))
        self.register_buffer("scale", torch.ones(history * state_size, device=device))
        self.register_buffer("limit", limit.to(device), persistent=False)
        self.shift: Tensor
        self.scale: Tensor
        self.limit: Tensor

    def forward(self, state: Tensor) -> Tensor:
        """(..., state) -> (..., state)."""
        return torch.addcmul(self.shift, state, self.scale).clamp(-self.limit, self.limit)

    @torch.no_grad()
    def set_moments(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        """Standardise by these moments of one row, each of shape (state_size,), from now on."""
        scale = torch.as_tensor(1.0 / np.maximum(deviation, LEAST_DEVIATION), dtype=torch.float32)
        scale = torch.where(self._chosen, scale, 1.0)
        shift = torch.where(self._chosen, -torch.as_tensor(mean, dtype=torch.float32) * scale, 0.0)
        self.scale.copy_(scale.repeat(self._history))
        self.shift.copy_(shift.repeat(self._history))
