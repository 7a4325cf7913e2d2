"""A short text for the parameters of a network, which differs wherever they do."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from torch import Tensor

LENGTH = 16
"""Hexadecimal digits."""


def fingerprint(parameters: Mapping[str, Tensor]) -> str:
    """Return the start of the SHA-256 of names and values."""
    digest = hashlib.sha256()
    for name, value in sorted(parameters.items()):
        digest.update(name.encode() + value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:LENGTH]
