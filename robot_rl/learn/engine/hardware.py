"""The hardware of the learner: its device, the floating-point format of products, and the memory of the process."""

from __future__ import annotations

import ctypes
import functools
import mmap
from typing import Literal

import torch

from robot_rl.errors import ConfigError

Precision = Literal["auto", "float32", "bfloat16"]


def computed_in(wanted: Precision, device: str = "cpu") -> torch.dtype:
    """Return the format; `auto` takes bfloat16 where the hardware has it, as elsewhere it is the slower one."""
    if wanted == "auto":
        wanted = "bfloat16" if _is_native(device) else "float32"
    return torch.bfloat16 if wanted == "bfloat16" else torch.float32


def _is_native(device: str) -> bool:
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def check_device(device: str) -> None:
    """Refuse `cuda` where there is none.

    Raises:
        ConfigError: with the cure.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "device=cuda, but torch sees no CUDA device; use --device cpu (device=cpu as a setting), or install a CUDA "
            "build of torch"
        )


def device_here(device: str) -> str:
    """Return the device of a run if this machine has it, else the CPU: of what also runs where the learner does not."""
    return device if device != "cuda" or torch.cuda.is_available() else "cpu"


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # names of `mallopt` in glibc's malloc.h
_KEPT = 1 << 30
_AT_ONCE = 1 << 26
_LARGE_PAGES = 1 << 28
"""Bytes of address space that are prepared for large pages; only what is used of them takes memory."""


@functools.cache
def keep_freed_memory() -> bool:
    """Make the C library keep up to 1 GiB of freed memory; return whether it has such a setting.

    It affects the whole process. By default glibc returns tensors of an update to the system with every call, and
    fetches them again a millisecond later, page by page: a twentieth of the time of an update from pixels. What is
    allocated from now on comes, where Linux has them, in pages of 2 MiB: an update's tensors lie on more pages of
    4 KiB than the core remembers the places of, and looking those up is a fifteenth of its time.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):  # glibc has it; macOS and musl do not
        return False
    kept = all(
        libc.mallopt(name, size)
        for name, size in ((_TRIM_THRESHOLD, _KEPT), (_TOP_PAD, _AT_ONCE), (_MMAP_THRESHOLD, _KEPT))
    )
    if kept and hasattr(mmap, "MADV_HUGEPAGE"):
        _prepare_large_pages(libc)
    return kept


def _prepare_large_pages(libc: ctypes.CDLL) -> None:
    """Advise the system of a block that glibc then keeps, untouched, for the next allocations."""
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    block = libc.malloc(_LARGE_PAGES)
    if block:
        start = -(-block // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (block + _LARGE_PAGES - start) // mmap.PAGESIZE * mmap.PAGESIZE
        libc.madvise(start, size, mmap.MADV_HUGEPAGE)  # a kernel without them refuses, and nothing is lost
        libc.free(block)
