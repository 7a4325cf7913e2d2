"""Building blocks of commands: parsers, checked numbers and replies, also for commands of other packages."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from robot_rl.env import registry

COMMAND_GROUP = "robot_rl.commands"


def natural(text: str) -> int:
    """Read a whole number of at least 0."""
    return _whole(text, 0)


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    return _whole(text, 1)


def share(text: str) -> float:
    """Read a number from 0 to 1."""
    return _number(text, lambda value: 0.0 <= value <= 1.0, "from 0 to 1")


def share_below_one(text: str) -> float:
    """Read a number from 0 to below 1."""
    return _number(text, lambda value: 0.0 <= value < 1.0, "from 0 to below 1")


def _whole(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least {least}, got {text!r}")
    return int(text)


def _number(text: str, fits: Callable[[float], bool], valid: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not fits(value):
        raise argparse.ArgumentTypeError(f"must be a number {valid}, got {text!r}")
    return value


class Reply(NamedTuple):
    """The answer of a command.

    Attributes:
        answer: For a program.
        lines: For a person.
        code: Exit code.
    """

    answer: Any
    lines: list[str]
    code: int = 0


MakeParser = Callable[[Any, str, Callable[[argparse.Namespace], Reply], str], argparse.ArgumentParser]
"""Adds the parser of one command: where, its name, its function, and a sentence about it."""


def add_parser(commands: Any, name: str, text: str) -> argparse.ArgumentParser:
    """Add the parser of a command to `commands`, with a sentence about it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False
    )
    return parser


def add_group(commands: Any, name: str, text: str) -> Any:
    """Add a group of commands, such as `data`, and return where its commands are added."""
    return add_parser(commands, name, text).add_subparsers(required=True, metavar="COMMAND")


def add_renamed(commands: Any, old: str, new: str) -> None:
    """Make the old name of a group of commands fail with the new one; it is not listed."""
    parser: argparse.ArgumentParser = commands.add_parser(old, add_help=False, allow_abbrev=False)
    parser.add_argument("rest", nargs=argparse.REMAINDER)

    def refuse(arguments: argparse.Namespace) -> int:
        first = " ".join(["", *arguments.rest[:1]])
        parser.error(f"`robot-rl {old}{first}` is `robot-rl {new}{first}` now")

    parser.set_defaults(command=refuse, parser=parser)


def add_commands(commands: Any, make: MakeParser) -> None:
    """Has every registered command, or group of commands, add its parser to those of the command line.

    Args:
        commands: Where parsers are added.
        make: Makes the parser of a command that returns a `Reply`.

    Raises:
        PluginError: if the package behind one cannot be imported.
    """
    for name in registry.names(COMMAND_GROUP):
        add = cast("Callable[[Any, MakeParser], None]", registry.load("command", COMMAND_GROUP, name))
        add(commands, make)


def flat_lines(answer: dict[str, Any], prefix: str = "") -> list[str]:
    """Return an answer for a person, with a line for each value and its dotted name."""
    lines = []
    for key, value in answer.items():
        if isinstance(value, dict):
            lines += flat_lines(value, f"{prefix}{key}.")
        else:
            lines.append(f"{prefix}{key}: {value:.4g}" if isinstance(value, float) else f"{prefix}{key}: {value}")
    return lines
