"""What a sub-command of the command line returns, so that commands of other packages fit into `robot-rl`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """What a command has to say.

    Attributes:
        answer: For a program.
        lines: For a person.
        code: Exit code.
    """

    answer: Any
    lines: list[str]
    code: int = 0


MakeParser = Callable[[Any, str, Callable[[argparse.Namespace], Reply], str], argparse.ArgumentParser]
"""Adds the parser of one command: where, its name, what it does, and a sentence about it."""
