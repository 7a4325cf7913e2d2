"""`robot-rl tasks`: the tasks and environments that are installed."""

from __future__ import annotations

import argparse
import logging
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply
from robot_rl.env.registry import environment_names, family_names, task_names
from robot_rl.errors import PluginError

logger = logging.getLogger(__name__)


def add_tasks_command(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl tasks`."""
    make(
        commands,
        "tasks",
        _tasks,
        "list the tasks that are installed",
        example="robot-rl tasks",
        page="docs/environments.md",
    )


def _tasks(arguments: argparse.Namespace) -> Reply:
    del arguments  # it has none
    from robot_rl.env.registry import make_environment
    from robot_rl.system.sister_packages import collisions

    for collision in collisions():
        logger.warning("%s", collision)
    rows = []
    for name in (*task_names(), *environment_names()):
        try:
            env = make_environment(name)
        except PluginError as error:  # the others can be done all the same
            logger.warning("%s", error)
            continue
        spec = env.environment_spec
        env.close()
        rows.append(
            {"name": name, "instruction": spec.instruction, "max_steps": spec.max_steps, "cameras": spec.cameras}
        )
    parts = [(str(row["name"]), row["instruction"]) for row in rows]
    parts += [(f"{family}:...", f"any environment of {family}: docs/environments.md") for family in family_names()]
    width = max(len(name) for name, _ in parts)
    return Reply(rows, [f"{name:<{width}}  {text}" for name, text in parts])
