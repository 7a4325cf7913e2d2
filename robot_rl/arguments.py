"""Numbers on the command line, checked while it is read."""

from __future__ import annotations

import argparse


def natural(text: str) -> int:
    """A whole number of at least 0."""
    return _whole(text, 0)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    return _whole(text, 1)


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, got {text!r}")
    return int(text)
