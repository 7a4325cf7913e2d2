"""`robot-rl new-task`: the command."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply


def add_command(commands: Any, make: MakeParser) -> None:
    """Add the command."""
    parser = make(
        commands,
        "new-task",
        new_task,
        "write a new simulated task into this folder: a package that trains as it is, with its test and page",
        example="robot-rl new-task press",
        page="docs/tutorials/own_task.md",
    )
    parser.add_argument("name", metavar="NAME", help="of the task and of its folder, e.g. press_button")


def new_task(arguments: argparse.Namespace) -> Reply:
    """Write the files, and list the commands that come next.

    Raises:
        ConfigError: if the task cannot have this name.
    """
    from robot_rl.new_task.skeleton import write_skeleton  # here, as `--help` should not wait

    name: str = arguments.name
    files = [str(path) for path in write_skeleton(name, Path())]
    commands = [
        f"cd {name}",
        "pip install --no-deps -e .",
        "python -m pytest",
        f"robot-rl train {name} --steps 1500 --episodes 20",
    ]
    lines = [*(f"written: {path}" for path in files), "", "next:", *(f"  {command}" for command in commands)]
    return Reply({"files": files, "commands": commands}, lines)
