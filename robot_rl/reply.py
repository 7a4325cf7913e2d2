"""What commands of the command line are made of, so that those of other packages fit into `robot-rl`."""

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


def add_parser(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    """The parser of a command, among those of `commands`, with a sentence about it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
    )
    return parser


def add_group(commands: Any, name: str, text: str) -> Any:
    """Where the commands of a group, such as `data`, are added."""
    return add_parser(commands, name, text).add_subparsers(required=True, metavar="COMMAND")


def flat_lines(answer: dict[str, Any], prefix: str = "") -> list[str]:
    """An answer for a person, a line for each value, with what it lies in before its name."""
    lines = []
    for key, value in answer.items():
        if isinstance(value, dict):
            lines += flat_lines(value, f"{prefix}{key}.")
        else:
            lines.append(f"{prefix}{key}: {value:.4g}" if isinstance(value, float) else f"{prefix}{key}: {value}")
    return lines
