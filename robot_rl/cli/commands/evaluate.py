"""`robot-rl eval`: evaluate the policy of a run, in its own world or in another one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply, above_zero, add_set_flag, natural, positive, share
from robot_rl.cli.parts.operator_flags import (
    add_operator_flags,
    add_robot_flag,
    check_robot_named,
    judged_deployment,
    judging_operator,
)
from robot_rl.cli.parts.summary_text import summary_lines
from robot_rl.env.registry import check_task
from robot_rl.system.process import one_thread


def add_eval_command(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl eval`."""
    parser = make(
        commands,
        "eval",
        _evaluate,
        "evaluate a trained policy on held-out resets, in its own world or in another one",
        example="robot-rl eval runs/one --episodes 300 --set world.tilt=0.03",
        page="docs/benchmarks.md",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory")
    parser.add_argument("--task", metavar="TASK", help="another task, in which the policy observes and acts alike")
    add_set_flag(
        parser,
        "another world: a setting of `world`, `simulation`, `randomization` or `environment`; or sac.deployed_noise",
    )
    parser.add_argument("--episodes", type=positive, metavar="N", help="how many (default: as the run was configured)")
    parser.add_argument("--seed", type=natural, metavar="N", help="which resets (default: as the run was configured)")
    parser.add_argument(
        "--decisions",
        type=above_zero,
        nargs="+",
        default=[],
        metavar="HZ",
        help="also play what was decided this many times a second, and print the mean over these rates",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where to compute (default: as the run did, or cpu)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the answer, and the world, to this JSON file")
    parser.add_argument("--video", type=Path, metavar="FILE", help="film the first episodes into this MP4")
    parser.add_argument("--record", type=Path, metavar="DIR", help="keep the episodes in a new store here")
    parser.add_argument(
        "--camera", action="append", default=[], metavar="NAME", help="film from this camera; repeatable (default: all)"
    )
    parser.add_argument(
        "--min-success", type=share, default=0.0, metavar="RATE", help="exit with 1 if the success rate is below this"
    )
    add_robot_flag(parser)
    add_operator_flags(parser)


def _evaluate(arguments: argparse.Namespace) -> Reply:
    if arguments.camera and arguments.video is None:
        arguments.parser.error("--camera needs --video FILE, the film to make from it")
    if arguments.task is not None and arguments.robot is None:
        check_task(arguments.task)
    operator = judging_operator(arguments)
    one_thread()
    from robot_rl.config.load import in_other_world
    from robot_rl.errors import RunDirectoryError
    from robot_rl.run.directory.run_directory import RunDirectory
    from robot_rl.run.evaluate_run import evaluate_run
    from robot_rl.system.atomic_file import check_can_be_written, to_json, write_result

    trained = RunDirectory.read_config(arguments.run)
    for file in (arguments.out, arguments.video):
        if file is not None:
            check_can_be_written(file)
    deployment = None
    if arguments.robot is None and arguments.task is None:
        check_robot_named(arguments.run)
    if arguments.robot is not None:
        task = arguments.task or trained.task
        deployment = judged_deployment(arguments.robot, task, trained.reward.kind, operator, arguments.record)
    answer = evaluate_run(
        arguments.run,
        elsewhere=in_other_world(trained, arguments.task, arguments.set),
        deployment=deployment,
        episodes=arguments.episodes,
        seed=arguments.seed,
        device=arguments.device,
        video=arguments.video,
        cameras=tuple(arguments.camera),
        record=arguments.record,
        decisions=tuple(dict.fromkeys(arguments.decisions)),
    )
    whole = arguments.video is None or answer["video"] is not None  # else evaluate_run has logged why
    if arguments.out is not None:
        try:
            write_result(arguments.out, to_json({**answer, "run": str(arguments.run)}, indent=2) + "\n")
        except RunDirectoryError as error:  # the answer is worth more than the file
            print(f"robot-rl: {error}", file=sys.stderr)
            whole = False
    code = exit_code(answer["success_rate"], arguments.min_success) if whole else 1
    return Reply(answer, summary_lines(answer), code)


def exit_code(rate: float | None, wanted: float) -> int:
    """Return the exit code for a success rate; None where no episode can succeed."""
    if (rate or 0.0) >= wanted:
        return 0
    found = "there is no success in this environment, so it" if rate is None else f"success {rate:.3f}"
    print(f"robot-rl: {found} is below --min-success {wanted:g}", file=sys.stderr)
    return 1
