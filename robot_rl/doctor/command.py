"""`robot-rl doctor`: the command."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.cli.command import MakeParser, Reply, positive
from robot_rl.doctor.contract.machine import Machine


def add_command(commands: Any, make: MakeParser) -> None:
    """Add the command."""
    parser = make(
        commands,
        "doctor",
        doctor,
        "find out what of this machine and its arm keeps a training from running well; nothing moves",
        example="robot-rl doctor --host 172.16.0.2",
        page="docs/doctor.md",
    )
    parser.add_argument(
        "--host", default="", metavar="HOST[:PORT]", help="measure the network to the robot at this address"
    )
    parser.add_argument(
        "--seconds", type=positive, default=10, metavar="N", help="how long to measure the network (default: 10)"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(), metavar="DIR", help="where runs will be written (default: here)"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")


def doctor(arguments: argparse.Namespace) -> Reply:
    """Examine this machine.

    Raises:
        RunDirectoryError: if the page cannot be written.
    """
    from robot_rl.doctor.examine import examine  # here, as `--help` should not wait
    from robot_rl.doctor.report import html_page, summary, text_lines
    from robot_rl.system.atomic_file import write_atomically

    machine = replace(
        Machine(), host=arguments.host, probe_seconds=float(arguments.seconds), folder=arguments.folder.expanduser()
    )
    results = list(examine(machine))
    subject = arguments.host
    answer, lines = summary(results, subject), text_lines(results)
    if arguments.html is not None:
        write_atomically(arguments.html, html_page(results, subject))
        lines.append(f"written: {arguments.html}")
    return Reply(answer, lines, 1 if answer["verdict"] == "fault" else 0)
