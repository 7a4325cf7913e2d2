"""`robot-rl commission`: the command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply
from robot_rl.errors import ConfigError


def add_command(commands: Any, make: MakeParser) -> None:
    """Add the command."""
    parser = make(
        commands,
        "commission",
        commission,
        "move an arm slowly for the first time, each motion with your consent, and find out what is wrong with it",
        example="robot-rl commission robot.yaml --move",
        page="docs/doctor.md",
    )
    parser.add_argument("robot", type=Path, metavar="ROBOT", help="the robot's file")
    parser.add_argument("--move", action="store_true", help="let it move; without, only list what would move")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TRIAL", help="only these trials; a report needs all of them"
    )


def commission(arguments: argparse.Namespace) -> Reply:
    """Make the trials, and write the report.

    Raises:
        ConfigError: if the robot's file is wrong, or there is no such trial.
        RobotLostError: if the arm cannot be reached.
    """
    from robot_rl.arm.robot_connection import read_connection  # here, as `--help` should not wait
    from robot_rl.commission.consent import consents
    from robot_rl.commission.opened_robot import open_robot
    from robot_rl.commission.report import PAGE, write_report
    from robot_rl.commission.session import TRIALS, CommissioningSession
    from robot_rl.doctor.contract.result import CheckResult, worst
    from robot_rl.doctor.report import summary, text_lines

    names = [trial.name for trial in TRIALS]
    if unknown := [name for name in arguments.only if name not in names]:
        raise ConfigError(f"no trial is called {', '.join(unknown)}; valid: {', '.join(names)}")
    trials = tuple(trial for trial in TRIALS if not arguments.only or trial.name in arguments.only)
    if not arguments.move:
        read_connection(arguments.robot)  # whoever reads what would move should know that the file is right
        lines = [f"{trial.name:<8} {trial.announcement}" for trial in trials]
        return Reply({"trials": [trial.name for trial in trials]}, [*lines, "nothing moves without --move"])

    def report(result: CheckResult) -> None:
        print(f"{result.severity:<6} {result.name}: {result.text}", file=sys.stderr)

    with open_robot(arguments.robot) as arm:
        outcome = CommissioningSession(arm, consents, trials).run(report)
    answer, lines = summary(outcome.results, arguments.robot.name), text_lines(outcome.results)
    if not arguments.only:
        folder = write_report(outcome, arguments.robot)
        answer["report"] = str(folder)
        lines.append(f"report: {folder / PAGE}")
    return Reply(answer, lines, 1 if worst(outcome.results) == "fault" else 0)
