"""Heads make one vector of state and images, the input of actor and critics. The loss of the critics trains them.

The head of a policy without images returns the state as it is scaled.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from robot_rl.config.components import EncoderConfig, TrainConfig
from robot_rl.data.replay.percept import PerceptSpec
from robot_rl.errors import SpecError
from robot_rl.learn.networks.image_networks import ImageNetwork, make_image_network
from robot_rl.learn.networks.state_scaling import StateScaling

STATE_WIDTH = 64
"""Width of the embedding of the state, beside the state itself."""
LEAST_DEVIATION = 1e-3
GOAL_GAIN = 4.0
"""The way to the goal is given to the networks in units this much finer than those of the pose."""


class StateHead(nn.Module):
    """The state, scaled.

    Args:
        state_size: Length of the stacked state.
        scaling: Of its elements that have no declared scale.
    """

    def __init__(self, state_size: int, scaling: StateScaling | None = None) -> None:
        super().__init__()
        self.size = self.state_size = state_size
        self.scaling = scaling

    def forward(self, state: Tensor, images: Tensor | None = None) -> Tensor:
        """(B, state) -> (B, state)."""
        del images  # there are none
        return state if self.scaling is None else self.scaling(state)

    def with_action(self, latent: Tensor, action: Tensor) -> Tensor:
        """Join latent (B, size) and action (B, act) to the input of critics, (B, size + act)."""
        return torch.cat([latent, action], -1)

    def check(self, leading: tuple[int, ...], state: Tensor, images: Tensor | None) -> None:
        """Refuse state and images of wrong shapes, with these leading dimensions.

        Raises:
            SpecError: naming both shapes.
        """
        _check_shape("state", state, (*leading, self.size))
        if images is not None:
            raise SpecError("images were given to a policy that learns from state alone")

    def to_goal(self, latent: Tensor) -> Tensor:
        """Return an empty tensor of shape (B, 0): without images no way is estimated."""
        return latent[:, :0]

    def standardise(self, images: Tensor) -> None:
        """Do nothing: there are no images."""

    def set_moments(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        """Standardise what has no declared scale by these moments; see `StateScaling.set_moments`."""
        if self.scaling is not None:
            self.scaling.set_moments(mean, deviation)


class ImageHead(nn.Module):
    """For each camera a feature map, a spatial embedding (SERL, Luo 2024) and a bottleneck; beside them any state.

    If the percepts have poses of tools, it also learns to estimate the way to the goal, from successful episodes: to
    where a gripper is next moved, or else to where the episode succeeded.

    Args:
        state_size: Length of the stacked state.
        percepts: Format of the percepts; they have images.
        config: Sizes, and the encoder where it is trained.
        generator: Source of the initial parameters; its device is the head's.
        scaling: Of the elements of the state that have no declared scale.
    """

    def __init__(
        self,
        state_size: int,
        percepts: PerceptSpec,
        config: EncoderConfig,
        generator: torch.Generator,
        scaling: StateScaling | None = None,
    ) -> None:
        super().__init__()
        self.scaling = scaling
        if (spec := percepts.images) is None:
            raise SpecError("a head for images needs percepts with images")
        self.state_size, self._view_shape = state_size, spec.view_shape
        cameras, device = spec.view_shape[0], generator.device
        self.encoder: ImageNetwork | None = None
        self.shift: Tensor
        self.scale: Tensor
        if spec.kind == "frames":
            self.encoder = make_image_network(config.name, generator)
            channels, *plane = self.encoder.map_shape(config.image_size)
        else:
            channels, *plane = spec.view_shape[1:]
            self.register_buffer("shift", torch.zeros(cameras, channels, *plane, device=device))
            self.register_buffer("scale", torch.ones(cameras, channels, *plane, device=device))
        cells, features = math.prod(plane), config.spatial_features
        # Bounds as of linear layers: uniform in +-1 / sqrt(inputs)
        self.kernel = _uniform((cameras, channels, cells, features), cells, generator)
        self.weight = _uniform((cameras, channels * features, config.bottleneck), channels * features, generator)
        self.bias = nn.Parameter(torch.zeros(cameras, 1, config.bottleneck, device=device))
        self.norm = nn.LayerNorm(config.bottleneck, device=device)
        parts = [config.bottleneck] * cameras
        if state_size:
            self.state_weight = _uniform((state_size, STATE_WIDTH), state_size, generator)
            self.state_norm = nn.LayerNorm(STATE_WIDTH, device=device)
            parts += [STATE_WIDTH, state_size]
        self.goal: nn.Parameter | None = None
        if percepts.tools.pose:
            self.goal = _uniform((sum(parts), len(percepts.tools.pose)), sum(parts), generator)
            parts.append(self.goal.shape[1])
        self.size, self._parts = sum(parts), len(parts)
        gains = [torch.full((width,), self._gain(width), device=device) for width in parts]
        self.register_buffer("gains", torch.cat(gains), persistent=False)
        self.gains: Tensor

    def forward(self, state: Tensor, images: Tensor | None) -> Tensor:
        """State (B, state) and images (B, *view_shape) -> (B, size)."""
        if images is None:
            raise SpecError(f"no images for a policy with images; expected shape {self._view_shape}")
        if self.scaling is not None:
            state = self.scaling(state)
        maps = self._maps(images).flatten(2).transpose(0, 1)  # (cameras, B, channels * cells)
        # For each camera: embedding e_cf = sum_k map_ck kernel_ckf, bottleneck sum_cf e_cf weight_cfo. The two are
        # multiplied out first: one product of large matrices is faster than many of small ones.
        cameras, channels, _, features = self.kernel.shape
        weight = self.weight.view(cameras, channels, features, -1)
        product = torch.matmul(self.kernel, weight).flatten(1, 2)  # (cameras, channels * cells, bottleneck)
        seen = torch.tanh(self.norm(torch.baddbmm(self.bias, maps, product)))  # (cameras, B, bottleneck)
        latent = torch.cat(seen.unbind(0), -1)
        if self.state_size:
            felt = torch.tanh(self.state_norm(state @ self.state_weight))
            latent = torch.cat([latent, felt, state], -1)
        if self.goal is not None:
            latent = torch.cat([latent, GOAL_GAIN * (latent @ self.goal)], -1)
        return latent * self.gains

    def with_action(self, latent: Tensor, action: Tensor) -> Tensor:
        """Join latent (B, size) and action (B, act) to the input of critics, (B, size + act)."""
        return torch.cat([latent, self._gain(action.shape[-1]) * action], -1)

    def _gain(self, width: int) -> float:
        """Return the scale of a part of the networks' input, by which all parts have the same weight.

        Otherwise a few hundred features of images would outweigh the action, and critics hardly distinguish actions.
        """
        return math.sqrt(self.size / (self._parts * width))

    def to_goal(self, latent: Tensor) -> Tensor:
        """Return the way to the goal that a latent (B, size) holds, in the units of the pose, shape (B, pose)."""
        width = 0 if self.goal is None else self.goal.shape[1]
        return latent[:, self.size - width :] / (GOAL_GAIN * self._gain(width)) if width else latent[:, :0]

    def check(self, leading: tuple[int, ...], state: Tensor, images: Tensor | None) -> None:
        """Refuse state and images of wrong shapes, with these leading dimensions.

        Raises:
            SpecError: naming both shapes.
        """
        _check_shape("state", state, (*leading, self.state_size))
        if images is None:
            raise SpecError(f"no images for a policy with images; expected shape {(*leading, *self._view_shape)}")
        _check_shape("images", images, (*leading, *self._view_shape))

    @torch.no_grad()
    def standardise(self, images: Tensor) -> None:
        """Set shift and scale of frozen features by those of examples (M, *view_shape).

        Without it the constant part of a fixed camera's picture would outweigh what changes from frame to frame.
        """
        if self.encoder is None:
            examples = images.float()
            mean = examples.mean(0)
            deviation = (examples - mean).square().mean((0, 3, 4), keepdim=True)[0].sqrt()
            self.scale.copy_((1.0 / deviation.clamp_min(LEAST_DEVIATION)).expand_as(mean))
            self.shift.copy_(-mean * self.scale)

    def set_moments(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        """Standardise what has no declared scale by these moments; see `StateScaling.set_moments`."""
        if self.scaling is not None:
            self.scaling.set_moments(mean, deviation)

    def _maps(self, images: Tensor) -> Tensor:
        """Return feature maps (B, cameras, channels, rows, columns)."""
        if self.encoder is None:
            return torch.addcmul(self.shift, images, self.scale)
        maps: Tensor = self.encoder(images.flatten(0, 1).permute(0, 3, 1, 2))  # the same encoder for all cameras
        return maps.view(*images.shape[:2], *maps.shape[1:])


def make_head(
    percepts: PerceptSpec, config: TrainConfig, generator: torch.Generator, stacked: int
) -> StateHead | ImageHead:
    """Make what sees for a network, for `stacked` states side by side."""
    size = percepts.state_size * stacked
    scaling: StateScaling | None = None
    if percepts.unscaled:
        scaling = StateScaling(percepts.state_size, percepts.unscaled, stacked, generator.device)
    if percepts.images is None:
        return StateHead(size, scaling)
    return ImageHead(size, percepts, config.encoder, generator, scaling)


def _check_shape(what: str, value: Tensor, expected: tuple[int, ...]) -> None:
    if tuple(value.shape) != expected:
        raise SpecError(f"{what}: shape {tuple(value.shape)}, expected {expected}")


def _uniform(shape: tuple[int, ...], inputs: int, generator: torch.Generator) -> nn.Parameter:
    bound = 1 / math.sqrt(inputs)
    return nn.Parameter(torch.empty(shape, device=generator.device).uniform_(-bound, bound, generator=generator))
