"""How a process that learns keeps its memory: what one update frees, the next one takes; the system is not asked."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3  # names of `mallopt` in glibc's malloc.h
_KEPT = 1 << 30
_AT_ONCE = 1 << 26


def keep_freed_memory() -> bool:
    """Has the C library keep up to 1 GiB of what is freed, instead of giving it back; whether it can be told so.

    It concerns the whole process. As it comes, glibc returns tensors of an update to the system with every call, and
    takes them again a millisecond later, page by page: a twentieth of the time of an update from pixels.
    """
    tell = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc has it; macOS and musl do not
    if tell is None:
        return False
    return all(
        tell(name, size) for name, size in ((_TRIM_THRESHOLD, _KEPT), (_TOP_PAD, _AT_ONCE), (_MMAP_THRESHOLD, _KEPT))
    )
