"""Image encoders that are trained with the head: a small convolutional network, and ResNet-10."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, group_norm, max_pool2d, relu

from robot_rl.errors import ConfigError

CONV_CHANNELS = 32
"""Of each of the four layers of `conv`, the encoder of DrQ (Yarats 2021)."""
RESNET_CHANNELS = (64, 128, 256, 512)
"""Of the four stages of `resnet10`, one basic block each (He 2016; SERL, Luo 2024)."""
GROUPS = 4
"""Of the group normalisation in `resnet10`."""


class ImageNetwork(nn.Module):
    """Images (B, 3, height, width), pixels 0 to 255, to a feature map (B, channels, rows, columns)."""

    def map_shape(self, image_size: int) -> tuple[int, int, int]:
        """Return channels, rows and columns for square images of this size."""
        with torch.no_grad():
            device = next(self.parameters()).device
            return tuple(self(torch.zeros(1, 3, image_size, image_size, device=device)).shape[1:])


class Conv(ImageNetwork):
    """Four 3x3 convolutions of 32 channels with stride 2."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        inputs = (3, *(CONV_CHANNELS,) * 3)
        self.weights = nn.ParameterList(_kernel((CONV_CHANNELS, n, 3, 3), generator) for n in inputs)
        self.biases = nn.ParameterList(
            nn.Parameter(torch.zeros(CONV_CHANNELS, device=generator.device)) for _ in inputs
        )

    def forward(self, images: Tensor) -> Tensor:
        """Compute the feature map."""
        x = images / 255.0 - 0.5
        for weight, bias in zip(self.weights, self.biases, strict=True):
            x = relu(conv2d(x, weight, bias, stride=2, padding=1))
        return x


class ResNet10(ImageNetwork):
    """Four stages of one basic block, with group normalisation."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        first = RESNET_CHANNELS[0]
        self.stem = _kernel((first, 3, 7, 7), generator)
        self.stem_norm = _Norm(first, generator.device)
        widths = zip((first, *RESNET_CHANNELS[:-1]), RESNET_CHANNELS, strict=True)
        self.blocks = nn.ModuleList(_BasicBlock(a, b, 1 if a == b else 2, generator) for a, b in widths)

    def forward(self, images: Tensor) -> Tensor:
        """Compute the feature map."""
        x = conv2d(images / 127.5 - 1.0, self.stem, stride=2, padding=3)
        x = max_pool2d(relu(self.stem_norm(x)), 3, stride=2, padding=1)
        for block in self.blocks:
            x = block(x)
        return x


class _BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first, self.second = (_kernel((outputs, n, 3, 3), generator) for n in (inputs, outputs))
        self.norms = nn.ModuleList(_Norm(outputs, generator.device) for _ in range(2))
        self.stride, self.shortcut = stride, None
        if inputs != outputs:
            self.shortcut = _kernel((outputs, inputs, 1, 1), generator)
            self.norms.append(_Norm(outputs, generator.device))

    def forward(self, x: Tensor) -> Tensor:
        y = relu(self.norms[0](conv2d(x, self.first, stride=self.stride, padding=1)))
        y = self.norms[1](conv2d(y, self.second, padding=1))
        if self.shortcut is not None:
            x = self.norms[2](conv2d(x, self.shortcut, stride=self.stride))
        return relu(x + y)


class _Norm(nn.Module):
    def __init__(self, channels: int, device: torch.device) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels, device=device))
        self.shift = nn.Parameter(torch.zeros(channels, device=device))

    def forward(self, x: Tensor) -> Tensor:
        return group_norm(x, GROUPS, self.scale, self.shift)


def make_image_network(name: str, generator: torch.Generator) -> ImageNetwork:
    """Make `conv` or `resnet10`, on the generator's device.

    Raises:
        ConfigError: for any other name.
    """
    kinds: dict[str, type[Conv | ResNet10]] = {"conv": Conv, "resnet10": ResNet10}
    if name not in kinds:
        raise ConfigError(f"encoder {name!r} is not trained with the head; valid: {', '.join(kinds)}")
    return kinds[name](generator)


def _kernel(shape: tuple[int, ...], generator: torch.Generator) -> nn.Parameter:
    """Draw weights that keep the size of the signal under ReLU (He 2015)."""
    deviation = math.sqrt(2.0 / math.prod(shape[1:]))
    return nn.Parameter(torch.empty(shape, device=generator.device).normal_(0.0, deviation, generator=generator))
