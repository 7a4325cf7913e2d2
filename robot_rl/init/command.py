"""`robot-rl init`: the command."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply
from robot_rl.errors import ConfigError, RobotRLError

logger = logging.getLogger(__name__)
FLAGS = ("arm", "judge", "start", "box_low", "box_high", "teleop", "task", "instruction", "gripper")


def add_command(commands: Any, make: MakeParser) -> None:
    """Add the command."""
    parser = make(
        commands,
        "init",
        init,
        "write the file of a robot, from what is plugged in and from your answers",
        example="robot-rl init --out robot.yaml",
        page="docs/doctor.md",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("robot.yaml"), metavar="FILE", help="never overwritten (default: robot.yaml)"
    )
    parser.add_argument("--arm", metavar="DRIVER", help="driver of the arm")
    parser.add_argument("--setting", action="append", default=[], metavar="KEY=VALUE", help="setting of it; repeatable")
    parser.add_argument("--camera", action="append", default=[], metavar="NAME=SOURCE", help="a camera; repeatable")
    parser.add_argument(
        "--judge", metavar="person|goal", help="who decides about episodes; goal: the tool has to come to a point"
    )
    parser.add_argument(
        "--start", metavar='here|"X Y Z"|none', help="where an episode starts; here: where the arm is now; it holds"
    )
    parser.add_argument("--box-low", metavar='"X Y Z"', help="least position of the tool in the base frame [m]")
    parser.add_argument("--box-high", metavar='"X Y Z"', help="largest position")
    parser.add_argument("--teleop", metavar="DEVICE", help="with what a person leads the arm, or console")
    parser.add_argument("--task", metavar="NAME", help="name of the task")
    parser.add_argument("--instruction", metavar="TEXT", help="what is to be done")
    parser.add_argument("--gripper", metavar="yes|no", help="whether the task moves the gripper")
    parser.add_argument("--no-check", action="store_true", help="do not examine this machine afterwards")
    parser.add_argument("--no-questions", action="store_true", help="take defaults for what no flag gives")


def init(arguments: argparse.Namespace) -> Reply:
    """Put the questions, write the file, and list the commands of the first day.

    Raises:
        ConfigError: if the file exists, a flag is wrong, or an answer is missing.
    """
    from robot_rl.cell.robot_file import read_robot_file  # here, as `--help` should not wait
    from robot_rl.doctor.contract.machine import Machine
    from robot_rl.doctor.examine import examine
    from robot_rl.doctor.report import text_lines
    from robot_rl.init.interview import interview
    from robot_rl.init.plan import first_day, robot_file_text
    from robot_rl.init.plugged_in import plugged_in
    from robot_rl.init.questions import Questions

    out: Path = arguments.out
    if out.exists():
        raise ConfigError(f"{out} exists, and is never overwritten; give another name with --out, or move it away")
    found = plugged_in(Machine())
    given = {f"--{flag.replace('_', '-')}": getattr(arguments, flag) for flag in FLAGS}
    interactive = not arguments.no_questions
    if interactive:
        _show_found(found.ports, [what for _, what in found.cameras], found.devices)
    questions = Questions(given, interactive=interactive)
    plan = interview(questions, found, settings=arguments.setting, cameras=arguments.camera)
    _write_new(out, robot_file_text(plan, str(out)))
    try:
        robot = read_robot_file(out, plan.task).connection
    except RobotRLError:
        out.unlink()  # it would keep the corrected call from writing
        raise
    commands = first_day(plan, str(out))
    lines = [f"written: {out}; read it once"]
    results = []
    if not arguments.no_check:
        logger.info("examining this machine")
        results = list(examine(Machine(devices=robot.device_nodes())))
        faults = [result for result in results if result.severity == "fault"]
        lines += text_lines(faults) if faults else ["this machine has no fault; robot-rl doctor shows its notes"]
    lines += ["", "the first day:", *(f"  {command}" for command in commands)]
    return Reply({"robot_file": str(out), "commands": commands, "results": [one.row() for one in results]}, lines)


def _show_found(ports: tuple[str, ...], cameras: list[str], devices: tuple[str, ...]) -> None:
    for what, found in (("serial ports", ports), ("cameras", cameras), ("input devices", devices)):
        print(f"{what}: {', '.join(found) or 'none found'}", file=sys.stderr)
    print("An empty answer takes what stands in brackets; Ctrl-C ends, and nothing is written.\n", file=sys.stderr)


def _write_new(path: Path, text: str) -> None:
    """Write a file that does not exist yet; of two programs, the second fails."""
    from robot_rl.system.atomic_file import writing  # it knows numpy, and the other commands start faster

    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
