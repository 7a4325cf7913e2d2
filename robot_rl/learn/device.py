"""Whether what a configuration computes on is there."""

from __future__ import annotations

import torch

from robot_rl.errors import ConfigError


def check_device(device: str) -> None:
    """Refuses `cuda` where there is none.

    Raises:
        ConfigError: with the cure.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "device=cuda, but torch sees no CUDA device; use device=cpu, or install a CUDA build of torch"
        )
