"""`robot-rl practice`: learn a task and its reverse in turn, without resets."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl.cli.parts.command import MakeParser, Reply, add_settings_flags, given_settings, natural, positive
from robot_rl.cli.parts.summary_text import practice_lines
from robot_rl.env.registry import check_task
from robot_rl.errors import RunDirectoryError
from robot_rl.system.process import one_thread


def add_command(commands: Any, make: MakeParser) -> None:
    """Add `robot-rl practice`."""
    parser = make(
        commands,
        "practice",
        _practice,
        "learn a task and its reverse in turn on one robot, without resets",
        example="robot-rl practice relocate_forward --unattended --out runs/practice",
        page="docs/person.md",
    )
    parser.add_argument("task", nargs="?", metavar="TASK", help="name of the task; `robot-rl tasks` lists them")
    parser.add_argument("--reverse", metavar="TASK", help="the task that leads back (default: the one that TASK names)")
    parser.add_argument("--alone", action="store_true", help="TASK alone: it begins again in the scene that it left")
    parser.add_argument(
        "--unattended",
        action="store_true",
        help="nobody is there: nobody takes over, and where only a person could help, the arm stops",
    )
    parser.add_argument(
        "--patience",
        type=positive,
        metavar="MINUTES",
        help="of robot time without a success, after which a person is needed (default: 30)",
    )
    parser.add_argument(
        "--call",
        default="",
        metavar="COMMAND",
        help="run this when a person is needed, with the message as its last argument, e.g. a script that sends it",
    )
    parser.add_argument(
        "--calls-per-hour", type=natural, default=6, metavar="N", help="most calls within an hour (default: 6)"
    )
    parser.add_argument("--obs", choices=("state", "pixels"), help="what the policies learn from (default: state)")
    add_settings_flags(parser)
    parser.add_argument("--steps", type=natural, metavar="N", help="online env steps of all tasks together")
    parser.add_argument("--seed", type=natural, metavar="N", help="everything random follows from it (default: 0)")
    parser.add_argument("--episodes", type=positive, metavar="N", help="held-out evaluation episodes of each task")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where the learners compute (default: cpu)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the practice")
    parser.add_argument("--resume", action="store_true", help="continue the practice in --out")


def _practice(arguments: argparse.Namespace) -> Reply:
    from robot_rl.config.load import load_config, load_run_config
    from robot_rl.practice.files import PracticeFiles, PracticePlan

    flags = {
        "obs": "observations",
        "seed": "seed",
        "steps": "env_steps",
        "device": "device",
        "episodes": "evaluation.episodes",
    }
    settings = given_settings(arguments, flags)
    if any(setting.partition("=")[0].strip() == "task" for setting in settings):
        arguments.parser.error("the tasks are not settings; name them: robot-rl practice TASK [--reverse TASK]")
    if arguments.resume:
        if arguments.task or arguments.reverse or arguments.alone or arguments.unattended:
            arguments.parser.error("--resume continues what --out holds; do without TASK and the flags that choose it")
        plan = PracticeFiles.read_plan(arguments.out)
        if arguments.patience is not None:
            plan = replace(plan, patience=60.0 * arguments.patience)
        own = arguments.out / plan.tasks[0] / "config.yaml"
        if not own.is_file():
            raise RunDirectoryError(f"{arguments.out} ended before its first training began; begin it without --resume")
        config = load_run_config(arguments.config or own, settings)
    else:
        PracticeFiles.check_free(arguments.out)
        tasks = _tasks(arguments)
        plan = PracticePlan(tasks, arguments.unattended, 60.0 * (arguments.patience or 30))
        config = load_config(arguments.config, [*settings, f"task={tasks[0]}"])
    one_thread()  # and whatever takes seconds to import, after what a user may have got wrong
    from robot_rl.practice.practice import practice

    calls = {"call": arguments.call, "calls_per_hour": arguments.calls_per_hour}
    summary = practice(config, arguments.out, plan, resume=arguments.resume, **calls)
    return Reply(summary, [*practice_lines(summary), f"directory: {arguments.out}"])


def _tasks(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the tasks that the flags name, in turn."""
    if arguments.task is None:
        arguments.parser.error("name a task, e.g. robot-rl practice relocate_forward")
    if arguments.alone and arguments.reverse:
        arguments.parser.error("--alone and --reverse contradict each other; leave one out")
    check_task(arguments.task)
    if arguments.alone:
        return (arguments.task,)
    reverse = arguments.reverse or _reverse_of(arguments.task)
    if not reverse:
        arguments.parser.error(
            f"{arguments.task} has no reverse; name the task that leads back (--reverse TASK), or practise it alone, "
            "if it can begin again where it ended (--alone)"
        )
    check_task(reverse)
    if reverse == arguments.task:
        arguments.parser.error(f"{reverse} is no reverse of itself; --alone practises one task")
    return arguments.task, reverse


def _reverse_of(task: str) -> str:
    """Return the reverse that a task names; empty where it names none."""
    from robot_rl.env.registry import is_environment, make_workcell
    from robot_rl.env.task import WorkcellOptions

    if is_environment(task):
        return ""
    cell = make_workcell(task, WorkcellOptions())
    try:
        return cell.task.spec.reverse
    finally:
        cell.close()
