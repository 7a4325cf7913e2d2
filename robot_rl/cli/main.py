"""The command line of `robot-rl`; `robot-rl --help` lists the commands. Wiring only.

Answers go to standard output (as JSON with `--json`), progress and errors to standard error. Exit codes: 0 done,
1 an error or a figure below the wanted one, 2 wrong usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from robot_rl import __version__
from robot_rl.cli.commands.base import add_base_commands
from robot_rl.cli.commands.bench import add_bench_commands
from robot_rl.cli.commands.classifier import add_classifier_commands
from robot_rl.cli.commands.data import add_data_commands
from robot_rl.cli.commands.demo import add_demo_command
from robot_rl.cli.commands.evaluate import add_eval_command
from robot_rl.cli.commands.inspect import add_inspect_command
from robot_rl.cli.commands.label import add_label_commands
from robot_rl.cli.commands.operator import add_devices_command, add_operator_commands
from robot_rl.cli.commands.tasks import add_tasks_command
from robot_rl.cli.commands.train import add_train_command
from robot_rl.cli.completion import SHELLS, completion
from robot_rl.cli.parts.command import Reply, add_commands, add_group, add_parser, add_renamed
from robot_rl.cli.parts.parser import CommandParser
from robot_rl.cli.parts.standard_output import kept_for_answer
from robot_rl.env.registry import environment_names, family_names, task_names
from robot_rl.errors import InterruptedRunError, RobotRLError
from robot_rl.system.logs import show_logs
from robot_rl.system.printable import one_line, printable, printable_error, printable_json

_CURES = dict.fromkeys((errno.ENAMETOOLONG, errno.ELOOP), "check the path") | {errno.EACCES: "have its owner permit it"}
"""Cures of what the operating system finds wrong with a path as such."""


class _UnwrittenError(Exception):
    """The answer cannot be written, e.g. as the disk is full."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `robot-rl`; returns the exit code."""
    show_logs()
    arguments, unknown = command_line().parse_known_args(argv)
    if unknown:
        arguments.parser.refuse_unknown(unknown)
    try:
        code: int = arguments.command(arguments)
    except InterruptedRunError as error:
        print(f"robot-rl: {printable_error(str(error))}", file=sys.stderr)
        return 130
    except RobotRLError as error:
        print(f"robot-rl: {printable_error(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("robot-rl: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the answer, e.g. `head`, has had enough
        _discard_answer()
        return 141
    except _UnwrittenError as error:
        _discard_answer()
        print(f"robot-rl: all is done, but the answer cannot be written: {error}; send it elsewhere", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in _CURES or error.filename is None:
            raise
        print(f"robot-rl: {one_line(str(error.filename))}: {error.strerror}; {_CURES[error.errno]}", file=sys.stderr)
        return 1
    return code


def command_line() -> CommandParser:
    """Return the parser of all commands, those of other packages too."""
    parser = CommandParser(
        prog="robot-rl",
        description="Teach a robot arm a manipulation skill.",
        example="robot-rl train reach --out runs/first",
        page="README.md",
    )
    parser.add_argument("--version", action="version", version=f"robot-rl {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    add_tasks_command(commands, _add)
    add_devices_command(commands, _add)
    add_demo_command(commands, _add)
    add_train_command(commands, _add)
    add_eval_command(commands, _add)
    add_base_commands(commands, _add)
    add_inspect_command(commands, _add)
    add_operator_commands(commands, _add)

    text = "look at, check, exchange and rearrange recorded episodes"
    add_data_commands(add_group(commands, "data", text, page="docs/data.md"), _add)

    text = "have a vision-language model label recorded episodes, and find out how far to trust it"
    add_label_commands(add_group(commands, "label", text, page="docs/rewards.md"), _add)

    text = "a classifier that detects in frames whether the task is done: record, train, and report how far to trust it"
    add_classifier_commands(add_group(commands, "classifier", text, page="docs/classifier.md"), _add)
    add_renamed(parser, commands, "reward", "classifier")

    text = "time a part against what this machine can do, or train on a suite of tasks"
    add_bench_commands(add_group(commands, "bench", text, page="docs/benchmarks.md"), _add)

    text = "print the script with which a shell completes commands, options and names of tasks"
    example = 'eval "$(robot-rl completion bash)"'
    shell = _add(commands, "completion", _completion, text, example=example, page="README.md")
    shell.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of: {', '.join(SHELLS)}")

    add_commands(commands, _add)
    return parser


def _add(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], Reply],
    text: str,
    /,
    *,
    example: str = "",
    page: str = "",
) -> CommandParser:
    """Add a command that prints its reply; see `MakeParser`."""

    def command(arguments: argparse.Namespace) -> int:
        with kept_for_answer() if arguments.json else nullcontext():
            reply = run(arguments)
        _print(reply, as_json=arguments.json)
        return reply.code

    parser = add_parser(commands, name, text, example=example, page=page)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.set_defaults(command=command, parser=parser)
    return parser


def _print(reply: Reply, *, as_json: bool) -> None:
    """Print the answer, for a program or for a person."""
    if as_json:
        from robot_rl.system.atomic_file import to_json  # it knows numpy's arrays, and other commands start faster

        text = printable_json(to_json(reply.answer))
    else:
        text = printable("\n".join(reply.lines))
    try:
        print(text, end="\n" if text else "", flush=True)  # nothing where the caller has closed standard output
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _UnwrittenError(error.strerror) from error


def _discard_answer() -> None:
    """Send what is left of the answer nowhere, or Python would fail at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _completion(arguments: argparse.Namespace) -> Reply:
    families = (f"{family}:" for family in family_names())
    names = {"TASK": (*task_names(), *environment_names(), *families)}
    script = completion(arguments.shell, command_line(), names)
    return Reply(script, [script.rstrip()])
