"""`robot-rl doctor`: the command."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.parts.command import MakeParser, Reply, positive
from robot_rl.errors import RobotRLError

if TYPE_CHECKING:
    from robot_rl.arm.robot_connection import RobotConnection
    from robot_rl.doctor.contract.machine import Machine
    from robot_rl.doctor.contract.result import CheckResult

logger = logging.getLogger(__name__)


def add_command(commands: Any, make: MakeParser) -> None:
    """Add the command."""
    parser = make(
        commands,
        "doctor",
        doctor,
        "find out what of this machine and its arm keeps a training from running well; nothing moves",
        example="robot-rl doctor robot.yaml --html page.html",
        page="docs/doctor.md",
    )
    parser.add_argument(
        "robot", nargs="?", type=Path, metavar="ROBOT", help="the robot's file: examine the arm and its cameras, too"
    )
    parser.add_argument(
        "--host", default="", metavar="HOST[:PORT]", help="measure the network to the robot at this address"
    )
    parser.add_argument(
        "--seconds", type=positive, default=10, metavar="N", help="how long to observe network and arm (default: 10)"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(), metavar="DIR", help="where runs will be written (default: here)"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page, too")


def doctor(arguments: argparse.Namespace) -> Reply:
    """Examine this machine, and the arm of a robot's file.

    Raises:
        ConfigError: if there is no such file of a robot.
        RunDirectoryError: if the page cannot be written.
    """
    from robot_rl.doctor.report import html_page, summary, text_lines  # here, as `--help` should not wait
    from robot_rl.system.atomic_file import check_can_be_written, write_result

    if arguments.html is not None:
        check_can_be_written(arguments.html)
    results = list(_results(arguments))
    subject = " ".join(filter(None, (arguments.robot and str(arguments.robot), arguments.host)))
    answer, lines = summary(results, subject), text_lines(results)
    if arguments.html is not None:
        write_result(arguments.html, html_page(results, subject))
        lines.append(f"written: {arguments.html}")
    return Reply(answer, lines, 1 if answer["verdict"] == "fault" else 0)


def _results(arguments: argparse.Namespace) -> Iterator[CheckResult]:
    from robot_rl.arm.robot_connection import read_connection
    from robot_rl.doctor.contract.machine import Machine
    from robot_rl.doctor.contract.result import CheckResult
    from robot_rl.doctor.examine import examine

    facts: dict[str, Any] = {
        "folder": arguments.folder.expanduser(),
        "probe_seconds": float(arguments.seconds),
        "host": arguments.host,
    }
    robot: RobotConnection | None = None
    if arguments.robot is not None:
        try:
            robot = read_connection(arguments.robot)
        except RobotRLError as error:
            if not arguments.robot.exists():
                raise
            logger.warning("%s", error)  # at once; the machine can be examined all the same
            yield CheckResult("robot file", "fault", str(error), cure=f"correct {arguments.robot}, then repeat")
    if robot is None:
        logger.info("examining this machine")
        yield from examine(Machine(**facts))
        return
    facts |= {"devices": robot.device_nodes(), "host": arguments.host or robot.host()}
    logger.info("examining this machine, then %s for %d s; nothing moves", robot.driver, arguments.seconds)
    yield from examine(Machine(**facts | {"host": ""}))
    yield from _with_network(Machine(**facts), robot, float(arguments.seconds))


def _with_network(machine: Machine, robot: RobotConnection, seconds: float) -> Iterator[CheckResult]:
    """Examine arm, cameras and network at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    from robot_rl.camera.open_source import opener
    from robot_rl.camera.source import CaptureFormat
    from robot_rl.doctor.checks.network import check_network
    from robot_rl.doctor.contract.result import CheckResult
    from robot_rl.doctor.standing.examine_arm import StandingRobot, examine_arm

    openers = {}
    for name, camera in robot.cameras.items():
        try:
            openers[name] = opener(camera.source, CaptureFormat(camera.width, camera.height, camera.rate))
        except RobotRLError as error:
            yield CheckResult(f"camera {name}", "fault", str(error), cure="correct its source in the robot's file")
    standing = StandingRobot(
        robot.make_driver,
        robot.max_age,
        (robot.limits.box_low, robot.limits.box_high),
        openers,
        {name: robot.cameras[name].rate for name in openers},
    )
    with ThreadPoolExecutor(1) as beside:
        network = beside.submit(lambda: list(check_network(machine)))
        yield from examine_arm(standing, seconds)
        yield from network.result()
