"""`robot-rl fleet console`: all robots on one page, and one button that stops them all."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply
from robot_rl.cli.parts.operator_flags import add_tls_flag
from robot_rl.console.access.address import TOKEN_VARIABLE
from robot_rl.errors import ConfigError
from robot_rl.fleet.member_commands import PAGE
from robot_rl.system.process import leave_terminal

logger = logging.getLogger(__name__)


def add_console_command(group: Any, make: MakeParser) -> None:
    """Add the command to the group."""
    console = make(
        group,
        "console",
        _console,
        "show all robots on one page, with one button that stops them all",
        example="robot-rl fleet console arm1=http://192.168.1.20:8480/#token=... arm2=http://192.168.1.21:8480/#token=...",
        page=PAGE,
    )
    console.add_argument("robots", nargs="*", metavar="NAME=ADDRESS", help="a robot, and what its console prints")
    console.add_argument("--plan", type=Path, metavar="FILE", help="fleet file with the `console` of each robot")
    console.add_argument(
        "--listen",
        default="",
        metavar="ADDRESS",
        help="HOST, :PORT or HOST:PORT (127.0.0.1:8481); on an address that others can reach it demands a token, made "
        f"up or taken from {TOKEN_VARIABLE}, which is also shown to robots whose address has no token",
    )
    add_tls_flag(console, "the page")


def _named(text: str) -> tuple[str, str]:
    """Return name and address. Not the parser's to check: it would blame the value of a misspelt flag."""
    name, separator, url = (part.strip() for part in text.partition("="))
    if not name or not separator or "/" in name:
        raise ConfigError(f"{text!r} is not NAME=ADDRESS, such as arm1=http://192.168.1.20:8480/")
    return name, url


def _console(arguments: argparse.Namespace) -> Reply:
    from robot_rl.console.introduction import introduce
    from robot_rl.overview.robot_address import OverviewAddress, RobotAddress
    from robot_rl.overview.server import MOST_ROBOTS, Overview
    from robot_rl.overview.watched_robot import WatchedRobot

    given = [*_planned(arguments.plan), *map(_named, arguments.robots)]
    names = [name for name, _ in given]
    if not given:
        arguments.parser.error("name the robots, as NAME=ADDRESS, or a --plan with the `console` of each")
    if len(given) > MOST_ROBOTS:
        raise ConfigError(f"one page shows at most {MOST_ROBOTS} robots, given are {len(given)}; use several")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"{', '.join(twice)}: given twice; each robot needs a name of its own")
    token = os.environ.get(TOKEN_VARIABLE, "")
    robots = [WatchedRobot(RobotAddress.parse(name, url, token), logger.info) for name, url in given]
    address = OverviewAddress(arguments.listen)
    overview = Overview(address, robots, token=token, certificate=arguments.tls, log=logger.info)
    asyncio.run(_until_stopped(overview.serve(lambda: introduce(overview, "all robots", "stop the robots"))))
    return Reply({"robots": names}, [])


async def _until_stopped(serving: Coroutine[Any, Any, None]) -> None:
    """Serve until Ctrl-C; another one ends the shutdown, too."""
    task, loop = asyncio.ensure_future(serving), asyncio.get_running_loop()

    def stop(number: int) -> None:
        if number == signal.SIGHUP:
            leave_terminal()
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _planned(path: Path | None) -> list[tuple[str, str]]:
    """Return the robots of a plan that have a console, and its address.

    Raises:
        ConfigError: if none has.
    """
    if path is None:
        return []
    from robot_rl.fleet.plan import read_plan

    found = [(name, robot.console) for name, robot in read_plan(path).robots.items() if robot.console]
    if not found:
        raise ConfigError(f"{path}: no robot has a `console`; give one the address that its console prints")
    return found
