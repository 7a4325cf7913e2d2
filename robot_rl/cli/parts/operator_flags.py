"""Flags of a human operator, and of the arm that a person leads."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.console.access.address import TOKEN_VARIABLE
from robot_rl.env.registry import names
from robot_rl.errors import ConfigError

if TYPE_CHECKING:
    from robot_rl.hil.operator_setup import OperatorOptions
    from robot_rl.run.deployment import Deployment

DEVICES = "robot_rl.devices"
"""Entry points of kinds of devices."""


def add_operator_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a human operator."""
    group = parser.add_argument_group("a person as the operator")
    group.add_argument(
        "--console",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="serve the operator console (default: 127.0.0.1:8480); on an address that others can reach it demands a "
        f"token, made up or taken from {TOKEN_VARIABLE}",
    )
    add_tls_flag(group, "the console")
    group.add_argument(
        "--heartbeat",
        type=_seconds,
        metavar="S",
        help="time without a message from the page in control after which the arm holds (default: 0.2; raise it only "
        "for a simulation on a machine that is busy)",
    )
    group.add_argument(
        "--teleop",
        action="append",
        default=[],
        type=_device,
        metavar="KIND",
        help=f"lead with this device ({', '.join(names(DEVICES))}); repeatable, the first to move leads. ARM=KIND "
        "leads that one of several arms. `robot-rl devices` lists what is there",
    )
    group.add_argument(
        "--map",
        action="append",
        default=[],
        type=_map,
        metavar="KIND=FILE",
        help="what the axes and buttons of a device mean, instead of its default; KIND may be browser, too",
    )
    group.add_argument(
        "--engage", choices=("move", "hold"), help="take over by moving, or only while a button is held (default: move)"
    )


def add_tls_flag(group: Any, what: str) -> None:
    """Add `--tls`, which serves that over TLS."""
    group.add_argument(
        "--tls",
        nargs="*",
        action=_TlsAction,
        metavar=("CERT", "KEY"),
        help=f"serve {what} over TLS: with a certificate that is made and kept, and whose fingerprint is printed, or "
        "with these two PEM files",
    )


def add_robot_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--robot`."""
    parser.add_argument(
        "--robot",
        type=Path,
        metavar="FILE",
        help="on a real arm: a YAML file with its driver, limits, cameras and task; without ROS (docs/arms.md)",
    )


def check_robot_named(run: Path) -> None:
    """Refuse to go on with a run of an arm without one, as its task may not exist, or be another one, in simulation.

    Raises:
        ConfigError: naming the robot file of the run.
    """
    from robot_rl.run.directory.run_directory import RunDirectory

    if file := RunDirectory.read_facts(run).get("robot_file"):
        here = file if os.path.isfile(file) else "FILE, the robot file of this machine"  # a run travels without it
        raise ConfigError(f"{run} was trained on the arm of {file}; add --robot {here}")


def operator_options(arguments: argparse.Namespace) -> OperatorOptions | None:
    """Return the options of the human operator; None without one."""
    if arguments.console is None and not arguments.teleop:
        for flag in ("tls", "map", "engage", "heartbeat"):
            if getattr(arguments, flag):
                arguments.parser.error(f"--{flag} needs --console or --teleop")
        return None
    from robot_rl.console.access.address import Address
    from robot_rl.hil.operator_setup import OperatorOptions

    return OperatorOptions(
        devices=tuple(dict.fromkeys(arguments.teleop)),
        maps=dict(arguments.map),
        engage=arguments.engage,
        console=None if arguments.console is None else Address(arguments.console),
        token=os.environ.get(TOKEN_VARIABLE),
        certificate=arguments.tls,
        **({} if arguments.heartbeat is None else {"heartbeat": arguments.heartbeat}),
    )


def attending_operator(arguments: argparse.Namespace) -> OperatorOptions | None:
    """Return `operator_options` of a command that has `--unattended`, too, and refuse both together."""
    operator = operator_options(arguments)
    if operator is not None and arguments.unattended:
        arguments.parser.error("--unattended has nobody there, --console and --teleop a person; leave one out")
    return operator


def judging_operator(arguments: argparse.Namespace) -> OperatorOptions | None:
    """Return `operator_options` of a command whose operator judges what an arm does, and refuse one without an arm."""
    operator = operator_options(arguments)
    if operator is not None and arguments.robot is None:
        arguments.parser.error("--console and --teleop need --robot FILE, as a simulation judges by itself")
    return operator


def judged_deployment(
    robot: Path, task: str, reward: str, operator: OperatorOptions | None, record: Path | None = None
) -> Deployment:
    """Return the deployment of an evaluation on the arm of a robot file, with who judges there.

    Args:
        robot: The robot file.
        task: Name of the task.
        reward: `reward.kind` of what is evaluated.
        operator: A person by the flags, or None.
        record: Directory of the episodes, where they are recorded.

    Raises:
        ConfigError: if the file is not valid, or nobody decides about episodes or makes the scene ready.
    """
    from robot_rl.cell.robot_place import judged_place

    place = judged_place(robot, task, reward, operator)
    if place.operator is None:
        return place.deployment
    from robot_rl.hil.local_operator import local_deployment

    return local_deployment(place.operator, record, place=place.deployment)


class _TlsAction(argparse.Action):
    """`--tls` alone means a certificate of the console's own, with two files the user's."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *rest: Any) -> None:
        """Keep `own` or the two files.

        Raises:
            ArgumentError: if there is one file, or more than two.
        """
        if len(values) not in (0, 2):
            raise argparse.ArgumentError(
                self, f"takes no file, or a certificate and its key, got {' '.join(values)!r}; write it after the task"
            )
        setattr(namespace, self.dest, tuple(map(Path, values)) or "own")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 10.0:
        raise argparse.ArgumentTypeError(f"must be a time from 0.1 to 10 s, got {text!r}")
    return value


def _device(text: str) -> str:
    if text.rpartition("=")[2] not in names(DEVICES) or text.startswith("="):
        raise argparse.ArgumentTypeError(
            f"invalid choice: {text!r} (choose KIND or ARM=KIND, with KIND from {', '.join(names(DEVICES))})"
        )
    return text


def _map(text: str) -> tuple[str, Path]:
    kind, _, path = text.partition("=")
    if kind not in (*names(DEVICES), "browser") or not path:
        raise argparse.ArgumentTypeError(
            f"must be KIND=FILE with KIND one of {', '.join(names(DEVICES))}, browser; got {text!r}"
        )
    return kind, Path(path)
