"""`robot-rl up BRINGUP`: starts ROS nodes together, where `ros2 launch` is not installed as well as where it is."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, add_parser
from robot_rl.errors import ConfigError, PluginError
from ros_nodes.bringup.plan import plan
from ros_nodes.bringup.table import NodeSpec, from_text, from_words, read_table


def add_command(commands: Any, add: MakeParser) -> None:
    """Add the command."""
    del add  # its nodes speak for themselves
    parser = add_parser(
        commands,
        "up",
        "start ROS 2 nodes together: a simulated arm, or a whole training",
        example="robot-rl up train --task reach",
        page="docs/ros2.md",
    )
    parser.set_defaults(command=_up, parser=parser)
    table = read_table()
    names = ", ".join(f"{name} ({entry['help']})" for name, entry in table["bringups"].items())
    parser.add_argument("bringup", metavar="BRINGUP", choices=list(table["bringups"]), help=f"one of: {names}")
    for name, entry in table["arguments"].items():
        default = entry["default"]
        if isinstance(default, list):
            parser.add_argument(
                f"--{name}", nargs="*", action="extend", metavar="X", help=f"{entry['help']} (default: none)"
            )
        elif isinstance(default, bool):
            parser.add_argument(f"--{name}", action="store_true", default=None, help=entry["help"])
        else:
            shown = default if default != "" else "none"
            parser.add_argument(f"--{name}", metavar="X", help=f"{entry['help']} (default: {shown})")
    parser.add_argument(
        "--robot_file", metavar="FILE", help="robot: a robot file (docs/arms.md) says all of the cell, its arm and task"
    )
    parser.add_argument("--domain", type=_domain, metavar="N", help="ROS domain (default: ROS_DOMAIN_ID, or 0)")
    parser.add_argument("--check", action="store_true", help="verify nodes, topics, types and QoS; nothing moves")


def _up(arguments: argparse.Namespace) -> int:
    if find_spec("rclpy") is None:
        raise PluginError(
            "ROS 2 is not here: source your installation (source /opt/ros/jazzy/setup.bash), or, without one, "
            "pip install 'robot_rl[ros]'"
        )
    table = read_table()
    given = {}
    for name, entry in table["arguments"].items():
        value = getattr(arguments, name)
        if value is None:
            continue
        if isinstance(value, list):
            given[name] = from_words(f"--{name}", value)
        else:
            given[name] = from_text(f"--{name}", value, entry["default"]) if isinstance(value, str) else value
    with tempfile.TemporaryDirectory(prefix="robot_rl-") as folder:
        if arguments.robot_file:
            _read_robot_file(arguments, given, table, Path(folder))
        specs = plan(arguments.bringup, given, Path(folder), flag="--")
        return _run(specs, arguments, str(given.get("namespace", "")))


def _run(specs: Sequence[NodeSpec], arguments: argparse.Namespace, namespace: str) -> int:
    _check_parameters(specs, namespace)
    environment = {} if arguments.domain is None else {"ROS_DOMAIN_ID": str(arguments.domain)}
    if arguments.check:
        os.environ.update(environment)
        from ros_nodes.bringup.check import check

        return check(specs, namespace, environment)
    from ros_nodes.bringup.supervisor import Supervisor

    return Supervisor(specs, namespace, environment).run()


def _read_robot_file(arguments: argparse.Namespace, given: dict[str, Any], table: dict[str, Any], folder: Path) -> None:
    """Give the bringup what a robot file says.

    Raises:
        ConfigError: if the bringup is another, or an argument says the same, or the file is not valid.
    """
    if arguments.bringup != "robot":
        raise ConfigError(f"--robot_file is for `robot-rl up robot`, not for {arguments.bringup}")
    if twice := [f"--{name}" for name in ("params", "task_file", "driver") if given.get(name)]:
        raise ConfigError(f"--robot_file says what {', '.join(twice)} says, too; give one of them")
    from ros_nodes.bringup.robot_parameters import write_cell  # other commands start faster

    task = str(given.get("task", table["arguments"]["task"]["default"]))
    cell = write_cell(Path(arguments.robot_file), task, folder).arguments()
    given |= cell | {"without": [*given.get("without", []), *cell["without"]]}


def _check_parameters(specs: Sequence[NodeSpec], namespace: str) -> None:
    """Refuse a parameter file with an unknown node or parameter, before any node is started."""
    from ros_nodes.node.parameter_file import check_names, check_namespace, read_sections  # other commands start faster

    for path in {spec.params for spec in specs if spec.params}:
        sections = read_sections(Path(path))
        check_names(sections)
        for spec in specs:
            check_namespace(sections, f"/{namespace.strip('/')}/{spec.executable}".replace("//", "/"))


def _domain(text: str) -> int:
    if not text.isdecimal() or int(text) > 232:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 232, got {text!r}")
    return int(text)
