"""The digest by which a policy is known, wherever its parameters are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch


def policy_digest(parameters: Mapping[str, torch.Tensor]) -> str:
    """Return the SHA-256 over names, types, shapes and bytes of a policy's parameters, as hexadecimal digits."""
    digest = hashlib.sha256()
    for name in sorted(parameters):
        tensor = parameters[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
