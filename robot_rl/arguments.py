"""Numbers on the command line, checked while it is read."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def natural(text: str) -> int:
    """A whole number of at least 0."""
    return _whole(text, 0)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _whole(text, 1)


def share(text: str) -> float:
    """A number from 0 to 1."""
    return _number(text, lambda value: 0.0 <= value <= 1.0, "from 0 to 1")


def share_below_one(text: str) -> float:
    """A number from 0 to below 1."""
    return _number(text, lambda value: 0.0 <= value < 1.0, "from 0 to below 1")


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, got {text!r}")
    return int(text)


def _number(text: str, fits: Callable[[float], bool], words: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not fits(value):
        raise argparse.ArgumentTypeError(f"must be a number {words}, got {text!r}")
    return value
