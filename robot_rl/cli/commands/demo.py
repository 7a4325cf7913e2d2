"""`robot-rl demo`: record demonstrations, by a person or by the task's scripted operator."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import (
    MakeParser,
    Reply,
    add_calibration_flag,
    add_set_flag,
    flat_lines,
    natural,
    positive,
)
from robot_rl.cli.parts.operator_flags import add_operator_flags, add_robot_flag, operator_options
from robot_rl.env.registry import check_task
from robot_rl.errors import InterruptedRunError, RunDirectoryError


def add_demo_command(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl demo`."""
    demo = make(
        commands,
        "demo",
        _demo,
        "record demonstrations, by a person or by the task's scripted operator",
        example="robot-rl demo cube_lift --episodes 20 --out demos",
        page="docs/operator.md",
    )
    demo.add_argument("task", metavar="TASK", help="name of the task; `robot-rl tasks` lists them")
    demo.add_argument("--episodes", type=positive, default=20, metavar="N", help="how many (default: 20)")
    demo.add_argument(
        "--seed", type=natural, default=0, metavar="N", help="seed of the resets and of the operator (default: 0)"
    )
    demo.add_argument(
        "--camera",
        action="append",
        default=[],
        metavar="NAME",
        help="record its frames, also without --obs pixels; repeatable",
    )
    demo.add_argument("--obs", choices=("state", "pixels"), default="state", help="what is recorded (default: state)")
    add_set_flag(demo)
    add_calibration_flag(demo)
    demo.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the new episode store")
    demo.add_argument(
        "--resume", action="store_true", help="go on with the store in --out; with a person it is gone on with anyway"
    )
    add_robot_flag(demo)
    add_operator_flags(demo)


def _demo(arguments: argparse.Namespace) -> Reply:
    robot = None
    if arguments.robot is None:
        check_task(arguments.task)
    else:
        from robot_rl.cell.robot_file import read_robot_file

        robot = read_robot_file(arguments.robot.expanduser(), arguments.task)
    operator = operator_options(arguments)
    from robot_rl.config.load import load_config
    from robot_rl.data.store.layout import STORE_HEAD, count_stored
    from robot_rl.run.deployment import Deployment, workcell_options
    from robot_rl.run.directory.calibrations import Calibrations, read_record
    from robot_rl.run.make_reward import RewardSetup

    place = None
    if robot is not None:
        from robot_rl.cell.robot_place import operator_of, robot_deployment

        operator, place = operator_of(robot, operator), robot_deployment(robot)
        if robot.cell.judge == "person" and operator is None:
            arguments.parser.error("--robot needs a person who demonstrates: --console, --teleop DEVICE, or `devices`")
    told = [f"task={arguments.task}", f"observations={arguments.obs}", *arguments.set]
    config = (place or Deployment()).with_cameras(load_config(None, told))
    reward = RewardSetup.from_config(config.reward).staged
    observed = reward.observe(workcell_options(config))
    observed = replace(observed, cameras=tuple(dict.fromkeys((*observed.cameras, *arguments.camera))))
    calibrations = Calibrations([read_record(entry) for entry in arguments.calibration], cameras=observed.cameras)
    shared: dict[str, Any] = {
        "episodes": arguments.episodes,
        "seed": arguments.seed,
        "observed": observed,
        "calibrations": calibrations,
    }
    if operator is None:
        from robot_rl.run.demonstrate import demonstrate

        reward.check_people(present=False)
        place = place or Deployment()
        judged = replace(place, workcell=reward.judging(place.workcell))
        if (arguments.out / STORE_HEAD).exists() and not arguments.resume:
            raise RunDirectoryError(
                f"{arguments.out}: already holds an episode store; add --resume to go on with it, or choose another "
                "--out"
            )
        try:
            answer = demonstrate(arguments.task, arguments.out, deployment=judged, resume=arguments.resume, **shared)
        except KeyboardInterrupt as error:
            raise InterruptedRunError(
                f"stopped after {count_stored(arguments.out)} of {arguments.episodes} demonstrations, which are kept; "
                "the same command with --resume records the others"
            ) from error
    else:
        from robot_rl.hil.demo_session import record_human_demonstrations
        from robot_rl.hil.operator_setup import viewed_workcell

        observed.intervention.refuse("here a person demonstrates")
        shared["make"] = reward.judging(viewed_workcell if place is None else place.workcell)
        answer = record_human_demonstrations(arguments.task, arguments.out, operator=operator, **shared)
    return Reply(answer, flat_lines(answer))
