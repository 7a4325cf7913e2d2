"""A line from a person after a prompt, which goes to standard error: standard output belongs to the answer."""

from __future__ import annotations

import sys


def read_line(prompt: str) -> str:
    """Show a prompt and return the line that follows, without its end.

    Raises:
        EOFError: if the input has ended.
    """
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")
