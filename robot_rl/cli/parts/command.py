"""Building blocks of commands: parsers, checked numbers and replies, also for commands of other packages."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from robot_rl.cli.parts.parser import CommandParser
from robot_rl.env import registry
from robot_rl.errors import PluginError

COMMAND_GROUP = "robot_rl.commands"
BENCH_COMMAND_GROUP = "robot_rl.bench_commands"
"""Benchmarks with arguments of their own."""


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


def above_zero(text: str) -> float:
    """Read a number above 0."""
    return _number(text, lambda value: 0.0 < value < math.inf, "above 0")


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


def add_settings_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that set what has a default."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file with settings")
    add_set_flag(parser, "override one setting")


def add_set_flag(parser: argparse.ArgumentParser, what: str = "a setting") -> None:
    """Add the flag that sets single values; `what` is its help, which says which ones."""
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help=f"{what}; repeatable")


def add_calibration_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--calibration`."""
    parser.add_argument(
        "--calibration",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a result of `robot-rl calibrate` that holds (of camera NAME); recorded, others are refused; repeatable",
    )


def add_call_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--call`."""
    parser.add_argument(
        "--call",
        default="",
        metavar="COMMAND",
        help="run this when a person is needed, with the message as its last argument, e.g. a script that sends it",
    )


def given_settings(arguments: argparse.Namespace, flags: Mapping[str, str]) -> list[str]:
    """Return the settings that were given: those of `--set`, then the flags that stand for one.

    Args:
        arguments: With `set`, and with each flag, which is None where it was not given.
        flags: The setting that each flag stands for, e.g. `steps` for `env_steps`.
    """
    given = {key: getattr(arguments, flag) for flag, key in flags.items()}
    return [*arguments.set, *(f"{key}={value}" for key, value in given.items() if value is not None)]


def demonstrations_of(store: Path, rewards: str | None = None) -> str:
    """Return the setting of a run that begins with all demonstrations of a store, as they are, or as an overlay has it.

    Raises:
        DataError: if there is no such store, or overlay.
    """
    from robot_rl.data.store.operator_labels import rewarded_episodes
    from robot_rl.data.store.store import EpisodeStore

    with EpisodeStore.open(store) as demos:
        return f"demonstrations={len(rewarded_episodes(demos, rewards))}"


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


class MakeParser(Protocol):
    """Adds the parser of one command."""

    def __call__(
        self,
        commands: Any,
        name: str,
        run: Callable[[argparse.Namespace], Reply],
        text: str,
        /,
        *,
        example: str = "",
        page: str = "",
    ) -> argparse.ArgumentParser:
        """Add it; see `add_parser`.

        Args:
            commands: Where it is added.
            name: Of the command.
            run: Its function.
            text: A sentence about it.
            example: A call of it.
            page: The page of the documentation about it, e.g. `docs/data.md`; that of its group if it is empty.
        """
        ...


def add_parser(commands: Any, name: str, text: str, *, example: str = "", page: str = "") -> CommandParser:
    """Add the parser of a command to `commands`, with a sentence about it; see `MakeParser`."""
    own_page = {"page": page} if page else {}
    parser: CommandParser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", example=example, **own_page
    )
    return parser


def add_group(commands: Any, name: str, text: str, *, page: str = "") -> Any:
    """Add a group of commands, such as `data`, and return where its commands are added.

    Args:
        commands: Where the group is added.
        name: Of the group.
        text: A sentence about it.
        page: The page of the documentation about its commands.
    """
    example = f"robot-rl {name} --help"
    group = add_parser(commands, name, text, example=example, page=page)
    return group.add_subparsers(
        required=True, metavar="COMMAND", parser_class=cast("type[CommandParser]", partial(CommandParser, page=page))
    )


def add_renamed(parser: CommandParser, commands: Any, old: str, new: str) -> None:
    """Make the old name of a group of commands of `parser` fail with the new one; it is not listed."""
    text = f"Renamed: `robot-rl {old}` is `robot-rl {new}` now."
    renamed: CommandParser = commands.add_parser(
        old, description=text, example=f"robot-rl {new} --help", page="docs/migration.md"
    )
    renamed.add_argument("rest", nargs=argparse.REMAINDER, help="what followed the old name")
    parser.renamed.add(old)

    def refuse(arguments: argparse.Namespace) -> int:
        first = " ".join(["", *arguments.rest[:1]])
        renamed.error(f"`robot-rl {old}{first}` is `robot-rl {new}{first}` now")

    renamed.set_defaults(command=refuse, parser=renamed)


def add_commands(commands: Any, make: MakeParser, group: str = COMMAND_GROUP) -> None:
    """Have every registered command, or group of commands, add its parser to those of the command line.

    A command whose package cannot be imported fails with the reason when it is called; the others work.

    Args:
        commands: Where parsers are added.
        make: Makes the parser of a command that returns a `Reply`.
        group: Of entry points.
    """
    for name in registry.names(group):
        try:
            add = cast("Callable[[Any, MakeParser], None]", registry.load("command", group, name))
        except PluginError as error:
            _add_broken(commands, name, error)
        else:
            add(commands, make)


def _add_broken(commands: Any, name: str, error: PluginError) -> None:
    """Add a command that raises this error whatever follows its name."""
    broken = add_parser(commands, name, "not available here: its package cannot be imported")
    broken.add_argument("rest", nargs=argparse.REMAINDER, help="what follows the name")

    def refuse(arguments: argparse.Namespace) -> int:
        raise error

    broken.set_defaults(command=refuse, parser=broken)


def flat_lines(answer: dict[str, Any], prefix: str = "") -> list[str]:
    """Return an answer for a person, with a line for each value and its dotted name."""
    lines = []
    for key, value in answer.items():
        if isinstance(value, dict) and value:
            lines += flat_lines(value, f"{prefix}{key}.")
        else:
            lines.append(f"{prefix}{key}: {in_words(value)}")
    return lines


def in_words(value: Any) -> str:
    """Return a value for a person: no `None`, `True`, `nan` or brackets; numbers with four digits that count."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "not known"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}: {in_words(entry)}" for key, entry in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value)) or "none"
    return str(value)


def in_bytes(count: int) -> str:
    """Return a size as text."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000.0:
            break
        size, unit = size / 1000.0, larger
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
