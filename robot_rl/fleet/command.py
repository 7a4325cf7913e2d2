"""`robot-rl fleet`: several robots, one learner, on this machine or on several."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import Any

from robot_rl.cli.commands.base import base_settings
from robot_rl.cli.parts.command import (
    MakeParser,
    Reply,
    add_group,
    add_set_flag,
    flat_lines,
    given_settings,
    natural,
    positive,
)
from robot_rl.env.registry import check_task
from robot_rl.errors import ConfigError
from robot_rl.fleet.console_command import add_console_command
from robot_rl.fleet.member_commands import PAGE, add_member_commands

logger = logging.getLogger(__name__)


def add_commands(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl fleet`."""
    group = add_group(commands, "fleet", "several robots that learn together, one learner", page=PAGE)
    train = make(
        group,
        "train",
        _train,
        "run a whole fleet on this machine: a process for the learner and one for each robot",
        example="robot-rl fleet train reach --robots 4 --out runs/fleet",
        page=PAGE,
    )
    train.add_argument("task", nargs="?", metavar="TASK", help="name of the task (default: as in the plan)")
    train.add_argument(
        "--robots", "--envs", type=positive, metavar="N", help="simulated robots that are alike, a process each"
    )
    train.add_argument("--plan", type=Path, metavar="FILE", help="fleet file: the robots by name, and the training")
    train.add_argument("--obs", choices=("state", "pixels"), help="what the policy learns from (default: state)")
    train.add_argument("--seed", type=natural, metavar="N", help="everything random follows from it (default: 0)")
    train.add_argument("--steps", type=natural, metavar="N", help="online env steps of all robots together")
    train.add_argument("--episodes", type=positive, metavar="N", help="held-out evaluation episodes of each robot")
    train.add_argument("--base", metavar="KIND:FILE", help="a base that all robots correct, e.g. chunk:base.pt")
    add_set_flag(train)
    train.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the fleet")
    train.add_argument("--resume", action="store_true", help="continue the fleet in --out")

    add_member_commands(group, make)
    add_console_command(group, make)

    status = make(
        group, "status", _status, "show where a fleet stands", example="robot-rl fleet status runs/fleet", page=PAGE
    )
    status.add_argument("path", type=Path, metavar="DIR", help="directory of the fleet, or of its learner")


def _train(arguments: argparse.Namespace) -> Reply:
    from robot_rl.base_policy.base_file import facts_of_base
    from robot_rl.config.load import load_config
    from robot_rl.fleet import supervisor
    from robot_rl.fleet.plan import read_plan, simulated_plan
    from robot_rl.run.deployment import Deployment

    out, parser = arguments.out, arguments.parser
    flags = {
        "task": "task",
        "obs": "observations",
        "seed": "seed",
        "steps": "env_steps",
        "episodes": "evaluation.episodes",
    }
    settings = [*base_settings(arguments.base), *given_settings(arguments, flags)]
    if arguments.resume:
        if arguments.plan or arguments.robots or arguments.task:
            parser.error("--resume continues what --out holds; do without TASK, --robots and --plan")
        if not (out / supervisor.PLAN).is_file():
            raise ConfigError(f"{out} holds no fleet to resume (it has no {supervisor.PLAN}); check the path")
        plan = read_plan(out / supervisor.PLAN, settings)
    else:
        if (arguments.plan is None) == (arguments.robots is None):
            parser.error("give --robots N for simulated robots that are alike, or --plan FILE; not both")
        supervisor.check_free(out)
        plan = (
            simulated_plan(Deployment().with_cameras(load_config(None, settings)), arguments.robots)
            if arguments.plan is None
            else read_plan(arguments.plan, settings)
        )
    check_task(plan.train.task)
    facts_of_base(plan.train.base, out / supervisor.LEARNER)  # raises where its file is not there
    if real := [name for name, robot in plan.robots.items() if robot.cell]:
        parser.error(f"{', '.join(real)}: a real robot needs a person beside it; start it by `robot-rl fleet robot`")
    answer = supervisor.FleetSupervisor(plan, out, logger.info).run()
    return Reply(answer, [*flat_lines(answer), f"evaluate the policy of all: robot-rl eval {out / supervisor.LEARNER}"])


def _status(arguments: argparse.Namespace) -> Reply:
    from robot_rl.fleet.standing import read_standing

    standing = read_standing(arguments.path)
    lines = [f"{standing['env_steps']} of {standing['of']} env steps, {standing['updates']} updates"]
    for name, row in standing["robots"].items():
        state = "finished" if row["finished"] else "connected" if row["connected"] else "away"
        lines.append(f"{name:<16} {state:<10} {row['episodes']} episodes, {row['steps_remembered']} steps remembered")
    return Reply(standing, lines)
