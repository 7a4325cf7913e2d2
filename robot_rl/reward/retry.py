"""When to try again: waits that grow, drawn at random so that clients do not return together, or as the server says."""

from __future__ import annotations

import numpy as np
import urllib3
from urllib3.exceptions import InvalidHeader

TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""HTTP status codes after which another attempt may succeed."""
LONGEST_WAIT = 60.0
"""Of waits that nobody asked for [s]."""


def wait_before_retry(attempt: int, backoff: float, retry_after: str | None, rng: np.random.Generator) -> float:
    """Seconds to wait after the failed attempt number `attempt`, from 1.

    The server's `Retry-After`, if it gave one; else "full jitter": uniform in [0, min(60, backoff 2^(attempt - 1))].

    Args:
        attempt: Which attempt failed.
        backoff: Longest wait after the first [s].
        retry_after: Value of the header, seconds or a date; None if there was none.
        rng: Source of the jitter.
    """
    if retry_after is not None:
        try:
            return max(0.0, urllib3.Retry().parse_retry_after(retry_after))
        except InvalidHeader:
            pass  # as if it had given none
    return float(rng.uniform(0.0, min(LONGEST_WAIT, backoff * 2.0 ** (attempt - 1))))
