"""In which floating-point format products are computed."""

from __future__ import annotations

from typing import Literal

import torch

Precision = Literal["auto", "float32", "bfloat16"]


def computed_in(wanted: Precision, device: str = "cpu") -> torch.dtype:
    """The format; `auto` takes bfloat16 where the hardware has it, as elsewhere it is the slower one."""
    if wanted == "auto":
        wanted = "bfloat16" if _is_native(device) else "float32"
    return torch.bfloat16 if wanted == "bfloat16" else torch.float32


def _is_native(device: str) -> bool:
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
