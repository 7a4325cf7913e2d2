"""`robot-rl inspect`: what is in a run directory or an episode store."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply


def add_inspect_command(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl inspect`."""
    inspect = make(
        commands,
        "inspect",
        _inspect,
        "show what is in a run directory or an episode store",
        example="robot-rl inspect runs/one",
        page="docs/data.md",
    )
    inspect.add_argument("path", type=Path, metavar="PATH", help="run directory, or directory of an episode store")


def _inspect(arguments: argparse.Namespace) -> Reply:
    from robot_rl.cli.commands.path_facts import path_facts, path_lines

    facts = path_facts(arguments.path)
    return Reply(facts, path_lines(facts))
