"""`robot-rl fleet learner` and `robot-rl fleet robot`: one process of a fleet, on any machine."""

from __future__ import annotations

import argparse
import shlex
import socket
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply, flat_lines, natural
from robot_rl.cli.parts.operator_flags import add_operator_flags, add_robot_flag, operator_options
from robot_rl.env.registry import check_task
from robot_rl.errors import ConfigError
from robot_rl.system.process import one_thread

PAGE = "docs/fleet.md"


def add_member_commands(group: Any, make: MakeParser) -> None:
    """Add the commands of single processes to the group."""
    learner = make(
        group,
        "learner",
        _learner,
        "run the learner of a fleet, for robots on other machines",
        example="robot-rl fleet learner --plan fleet.yaml --listen 0.0.0.0:8490 --out runs/fleet/learner",
        page=PAGE,
    )
    _add_member_flags(learner)
    learner.add_argument("--listen", default="", metavar="ADDRESS", help="HOST, :PORT or HOST:PORT (127.0.0.1:8490)")
    learner.add_argument("--socket", type=natural, help=argparse.SUPPRESS)  # inherited from `fleet train`

    robot = make(
        group,
        "robot",
        _robot,
        "run one robot of a fleet, whose learner is on this machine or another",
        example="robot-rl fleet robot arm1 --plan fleet.yaml --learner gpu:8490 --out runs/arm1",
        page=PAGE,
    )
    robot.add_argument("name", metavar="NAME", help="name of the robot in the plan")
    _add_member_flags(robot)
    robot.add_argument("--learner", default="", metavar="ADDRESS", help="where the learner listens (127.0.0.1:8490)")
    robot.add_argument(
        "--patience",
        type=natural,
        default=60,
        metavar="SECONDS",
        help="wait so long for a learner that is away: at the start, in simulation always (default: 60)",
    )
    add_robot_flag(robot)
    add_operator_flags(robot)


def _add_member_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plan", type=Path, required=True, metavar="FILE", help="fleet file, the same on all machines")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="its run directory")
    parser.add_argument("--resume", action="store_true", help="continue the run in --out")


def _learner(arguments: argparse.Namespace) -> Reply:
    from robot_rl.fleet.access import FleetAddress, fleet_token
    from robot_rl.fleet.plan import read_plan

    plan, address = read_plan(arguments.plan), FleetAddress(arguments.listen)
    one_thread()
    from robot_rl.fleet.serve import serve_fleet

    token = fleet_token(address)
    listener = _listen(address) if arguments.socket is None else socket.socket(fileno=arguments.socket)
    resume = _resumes(arguments)
    again = ["learner", "--plan", str(arguments.plan), "--resume", "--out", str(arguments.out)]
    if arguments.socket is not None:
        again = ["train", "--resume", "--out", str(arguments.out.parent)]  # who started this one
    command = shlex.join(["robot-rl", "fleet", *again])
    answer = serve_fleet(plan, arguments.out, listener, token, resume=resume, command=command)
    shown = {key: answer[key] for key in ("task", "env_steps", "updates", "utd", "robots", "wall_s")}
    return Reply(answer, [*flat_lines(shown), f"evaluate its policy: robot-rl eval {arguments.out}"])


def _robot(arguments: argparse.Namespace) -> Reply:
    from robot_rl.cli.parts.summary_text import summary_lines
    from robot_rl.fleet.access import FleetAddress, fleet_token
    from robot_rl.fleet.plan import read_plan

    plan, address = read_plan(arguments.plan), FleetAddress(arguments.learner)
    config, token = plan.config_of(arguments.name), fleet_token(address)
    operator, place = operator_options(arguments), None
    cell = arguments.robot or (Path(plan.robots[arguments.name].cell) if plan.robots[arguments.name].cell else None)
    if cell is None:
        check_task(config.task)
    else:
        from robot_rl.cell.robot_place import judged_place

        _, operator, place = judged_place(cell, config.task, config.reward.kind, operator)
    if (cell is not None or operator is not None) and not config.realtime:
        raise ConfigError(
            f"robot {arguments.name} has an arm or a person, who cannot act faster than real time: set realtime to "
            "true and processes to 2 under `train` of the plan"
        )
    one_thread()
    from robot_rl.fleet.robot_port import FleetMember
    from robot_rl.fleet.robot_run import run_robot

    if operator is not None:
        from robot_rl.hil.local_operator import local_deployment

        place = local_deployment(operator, arguments.out, config.env_steps, place)
    member = FleetMember(arguments.name, address, token, float(arguments.patience))
    command = ["robot-rl", "fleet", "robot", arguments.name, "--plan", str(arguments.plan), "--learner", str(address)]
    resume = _resumes(arguments)
    summary = run_robot(
        plan,
        member,
        arguments.out,
        resume=resume,
        command=shlex.join([*command, "--resume", "--out"]),
        deployment=place,
    )
    return Reply(summary, [*summary_lines(summary), f"run directory: {arguments.out}"])


def _resumes(arguments: argparse.Namespace) -> bool:
    """Return whether a run is resumed; check that a new one can be made before anything is opened."""
    from robot_rl.run.directory.run_directory import RunDirectory

    if not arguments.resume:
        RunDirectory.check_free(arguments.out)
    return bool(arguments.resume)


def _listen(address: Any) -> socket.socket:
    try:
        return socket.create_server(
            (address.host, address.port), family=socket.AF_INET6 if ":" in address.host else socket.AF_INET, backlog=128
        )
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address}: {error.strerror or error}; choose another address with --listen"
        ) from error
