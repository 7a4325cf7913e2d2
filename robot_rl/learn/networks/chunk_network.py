"""The network of a cloned base: from a history of observations to a chunk of actions.

With flow matching (Lipman 2023; as a policy: Black 2024) it carries noise x_0 to a chunk x_1 along dx/dt = v(x, t | o).
So it samples one of the ways in which the demonstrations go on, instead of their mean.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from robot_rl.config.components import TrainConfig
from robot_rl.data.replay.percept import PerceptSpec
from robot_rl.learn.networks.heads import ImageHead, StateHead, make_head

WIDTH = 256
"""Of the hidden layers."""
INTEGRATION_STEPS = 10
"""Euler steps from noise to a chunk."""
FREQUENCIES = 8
"""Sines and cosines of the time that the network sees."""
LIMIT = 5.0
"""Largest magnitude of a standardised state; beyond it nothing was demonstrated."""
LEAST_DEVIATION = 0.01


class ChunkNetwork(nn.Module):
    """Chunks of H actions of n numbers.

    Args:
        head: Makes the condition of standardised states and images.
        state_size: Elements of a stacked state.
        horizon: H.
        action_size: n.
        width: Of the two hidden layers.
        flow: Whether it samples chunks by flow matching; otherwise it is the mean of the demonstrated ones.
        generator: Initialises the parameters.
    """

    def __init__(
        self,
        head: StateHead | ImageHead,
        *,
        state_size: int,
        horizon: int,
        action_size: int,
        width: int,
        flow: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.head, self.horizon, self.action_size, self.flow = head, horizon, action_size, flow
        out = horizon * action_size
        inputs = head.size + (out + 2 * FREQUENCIES if flow else 0)
        self.layers = nn.Sequential(
            nn.Linear(inputs, width), nn.LayerNorm(width), nn.SiLU(),
            nn.Linear(width, width), nn.LayerNorm(width), nn.SiLU(),
            nn.Linear(width, out),
        )  # fmt: skip
        with torch.no_grad():
            for layer in self.layers:
                if isinstance(layer, nn.Linear):
                    bound = 1 / math.sqrt(layer.in_features)
                    layer.weight.uniform_(-bound, bound, generator=generator)
                    layer.bias.zero_()
        self.register_buffer("shift", torch.zeros(state_size))
        self.register_buffer("scale", torch.ones(state_size))
        self.register_buffer("frequencies", 0.5 * math.pi * 2.0 ** torch.arange(FREQUENCIES))
        self.shift: Tensor
        self.scale: Tensor
        self.frequencies: Tensor

    @torch.no_grad()
    def standardise(self, states: Tensor) -> None:
        """Set the standardisation of the state by that of examples (M, state)."""
        mean = states.mean(0)
        deviation = (states - mean).square().mean(0).sqrt().clamp_min(LEAST_DEVIATION)
        self.scale.copy_(1.0 / deviation)
        self.shift.copy_(-mean / deviation)

    def condition(self, state: Tensor, images: Tensor | None) -> Tensor:
        """States (B, state) and images (B, *view_shape) -> (B, head.size)."""
        latent: Tensor = self.head(torch.addcmul(self.shift, state, self.scale).clamp(-LIMIT, LIMIT), images)
        return latent

    def loss(self, condition: Tensor, chunk: Tensor, noise: Tensor, time: Tensor) -> Tensor:
        """Return the loss of B chunks (B, H, n).

        L = mean |v(x_t, t | o) - (x_1 - x_0)|^2 with x_t = (1 - t) x_0 + t x_1, or mean |f(o) - x_1|^2.

        Args:
            condition: Of the observations, shape (B, head.size).
            chunk: x_1, shape (B, H, n).
            noise: x_0, standard normal, shape (B, H, n).
            time: t, uniform in [0, 1], shape (B,).
        """
        if not self.flow:
            return mse_loss(self.layers(condition), chunk.flatten(1))
        start, end = noise.flatten(1), chunk.flatten(1)
        between = torch.lerp(start, end, time[:, None])
        return mse_loss(self._velocity(condition, between, time), end - start)

    def chunks(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Return chunks (B, H, n) for conditions (B, head.size) and noise (B, H, n), standard normal for samples.

        With flow matching it is differentiable along both, by explicit Euler steps.
        """
        if not self.flow:
            mean: Tensor = self.layers(condition)
            return mean.view_as(noise)
        x = noise.flatten(1)
        for step in range(INTEGRATION_STEPS):
            time = torch.full((len(x),), step / INTEGRATION_STEPS, device=x.device)
            x = x + self._velocity(condition, x, time) / INTEGRATION_STEPS
        return x.view_as(noise)

    def _velocity(self, condition: Tensor, x: Tensor, time: Tensor) -> Tensor:
        angles = time[:, None] * self.frequencies
        velocity: Tensor = self.layers(torch.cat([condition, x, angles.sin(), angles.cos()], -1))
        return velocity


def make_chunk_network(
    percepts: PerceptSpec,
    config: TrainConfig,
    generator: torch.Generator,
    *,
    horizon: int,
    history: int,
    action_size: int,
    flow: bool,
) -> ChunkNetwork:
    """Make the network of a base for percepts without a pose, on the device of the generator; see `ChunkNetwork`."""
    return ChunkNetwork(
        make_head(percepts, config, generator, history),
        state_size=percepts.state_size * history,
        horizon=horizon,
        action_size=action_size,
        width=WIDTH,
        flow=flow,
        generator=generator,
    )
