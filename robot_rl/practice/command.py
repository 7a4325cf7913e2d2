"""`robot-rl practice`: learn a task and its reverse in turn, without resets."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_rl.cli.parts.command import (
    MakeParser,
    Reply,
    add_call_flag,
    add_settings_flags,
    demonstrations_of,
    given_settings,
    natural,
    positive,
)
from robot_rl.cli.parts.operator_flags import add_operator_flags, add_robot_flag, attending_operator, check_robot_named
from robot_rl.cli.parts.summary_text import practice_lines
from robot_rl.env.registry import check_task
from robot_rl.system.process import one_thread

if TYPE_CHECKING:  # torch takes seconds to import
    from robot_rl.config.components import TrainConfig
    from robot_rl.hil.operator_setup import OperatorOptions
    from robot_rl.hil.turns_operator import TurnsOperator
    from robot_rl.practice.files import PracticePlan
    from robot_rl.practice.place import PracticePlace

WITHOUT_CURVE = "evaluation.curve_interval=0"
"""Setting on an arm: no program resets the scene for a learning curve. A user who sets it is refused."""
IN_REAL_TIME = ("realtime=true", "processes=2")
"""Settings on an arm, and with a person, who do not wait for a learner."""
SHARED = ("task", "env_steps")
"""Settings that no task has for itself."""


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
    add_call_flag(parser)
    parser.add_argument(
        "--calls-per-hour", type=natural, default=6, metavar="N", help="most calls within an hour (default: 6)"
    )
    parser.add_argument("--obs", choices=("state", "pixels"), help="what the policies learn from (default: state)")
    add_settings_flags(parser)
    parser.add_argument(
        "--own",
        action="append",
        default=[],
        type=_own,
        metavar="TASK:KEY=VALUE",
        help="a setting of one of the tasks alone, e.g. who judges it; repeatable",
    )
    parser.add_argument(
        "--demos",
        action="append",
        default=[],
        type=_demos,
        metavar="TASK=STORE",
        help="begin with these demonstrations of a task, instead of recording them; repeatable",
    )
    add_robot_flag(parser)
    parser.add_argument("--steps", type=natural, metavar="N", help="online env steps of all tasks together")
    parser.add_argument("--seed", type=natural, metavar="N", help="everything random follows from it (default: 0)")
    parser.add_argument("--episodes", type=positive, metavar="N", help="held-out evaluation episodes of each task")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where the learners compute (default: cpu)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the practice")
    parser.add_argument("--resume", action="store_true", help="continue the practice in --out")
    add_operator_flags(parser)


def _practice(arguments: argparse.Namespace) -> Reply:
    from robot_rl.practice.files import PracticeFiles, PracticePlan

    operator = attending_operator(arguments)
    settings = _settings(arguments)
    if arguments.resume:
        if arguments.task or arguments.reverse or arguments.alone or arguments.unattended or arguments.demos:
            arguments.parser.error("--resume continues what --out holds; do without TASK and the flags that choose it")
        plan = PracticeFiles.read_plan(arguments.out)
        if arguments.patience is not None:
            plan = replace(plan, patience=60.0 * arguments.patience)
        files = PracticeFiles(arguments.out)
        bases = {task: files.settings(task) for task in plan.tasks}
        if arguments.robot is None:
            check_robot_named(next(arguments.out / task for task in plan.tasks if files.has_run(task)))
    else:
        PracticeFiles.check_free(arguments.out)
        tasks = _tasks(arguments)
        demos = {task: str(store.absolute()) for task, store in _of_tasks(arguments, "demos", tasks).items()}
        plan = PracticePlan(tasks, arguments.unattended, 60.0 * (arguments.patience or 30), demos)
        bases = {}
    place = None
    if arguments.robot is not None:
        from robot_rl.practice.arm_place import arm_place, operator_on_arm

        if not plan.unattended:
            operator = operator_on_arm(arguments.robot, plan.tasks[0], operator)
    if operator is not None or arguments.robot is not None:
        settings += IN_REAL_TIME
    configs = _configs(arguments, plan, bases, settings)
    if arguments.robot is not None:
        there = operator is not None
        place = arm_place(arguments.robot, configs, plan.demos, resume=arguments.resume, person=there)
    one_thread()  # and whatever takes seconds to import, after what a user may have got wrong
    from robot_rl.practice.practice import practice

    calls = {"call": arguments.call, "calls_per_hour": arguments.calls_per_hour}
    person = None
    if operator is not None:
        person, place = _person(operator, arguments.out, configs, place)
    summary = practice(configs, arguments.out, plan, resume=arguments.resume, place=place, person=person, **calls)
    return Reply(summary, [*practice_lines(summary), f"directory: {arguments.out}"])


def _person(
    operator: OperatorOptions, out: Path, configs: Mapping[str, TrainConfig], place: PracticePlace | None
) -> tuple[TurnsOperator, PracticePlace]:
    """Return the person, and where they practise; in simulation that is in real time, with live views."""
    from robot_rl.hil.local_operator import simulated_place
    from robot_rl.hil.turns_operator import TurnsOperator
    from robot_rl.practice.place import PracticePlace

    steps = next(iter(configs.values())).env_steps
    person = TurnsOperator(operator, {task: out / task for task in configs}, steps)
    return person, place or PracticePlace(simulated_place())


def _settings(arguments: argparse.Namespace) -> list[str]:
    """Return the settings of all tasks that were given, and those of an arm."""
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
    if arguments.robot is not None:
        settings = [WITHOUT_CURVE, *settings]
    return settings


def _configs(
    arguments: argparse.Namespace, plan: PracticePlan, bases: Mapping[str, Path], settings: list[str]
) -> dict[str, TrainConfig]:
    """Return the settings of each task: those of all, then its own; of a resumed practice on top of what it had."""
    from robot_rl.config.load import load_config, load_run_config

    own: dict[str, list[str]] = {task: [] for task in plan.tasks}
    for task, setting in arguments.own:
        _check_named(arguments, "own", task, plan.tasks)
        if (key := setting.partition("=")[0].strip()) in SHARED:
            arguments.parser.error(f"--own: {key} is the same for all tasks; valid: any other setting")
        own[task].append(setting)
    configs = {}
    for task in plan.tasks:
        chosen = [*settings, *own[task]]
        if task in bases:
            configs[task] = load_run_config(bases[task], [*chosen, f"task={task}"], arguments.config)
            continue
        if (store := plan.demos.get(task)) is not None:
            chosen.append(demonstrations_of(Path(store)))
        configs[task] = load_config(arguments.config, [*chosen, f"task={task}"])
    return configs


def _of_tasks(arguments: argparse.Namespace, flag: str, tasks: Sequence[str]) -> dict[str, Path]:
    """Return the values of a flag by task; refuse a task that is not practised, or has two."""
    found: dict[str, Path] = {}
    for task, value in getattr(arguments, flag):
        _check_named(arguments, flag, task, tasks)
        if task in found:
            arguments.parser.error(f"--{flag} names {task} twice; merge the stores: robot-rl data merge")
        found[task] = value
    return found


def _check_named(arguments: argparse.Namespace, flag: str, task: str, tasks: Sequence[str]) -> None:
    if task not in tasks:
        arguments.parser.error(f"--{flag} {task}: that task is not practised; valid: {', '.join(tasks)}")


def _own(text: str) -> tuple[str, str]:
    task, _, setting = text.partition(":")
    key, equals, _ = setting.partition("=")
    if not task or "=" in task or not key or not equals:
        raise argparse.ArgumentTypeError(f"must be TASK:KEY=VALUE, e.g. plug:reward.kind=classifier, got {text!r}")
    return task, setting


def _demos(text: str) -> tuple[str, Path]:
    task, _, store = text.partition("=")
    if not task or not store:
        raise argparse.ArgumentTypeError(f"must be TASK=STORE, e.g. plug=demos/plug, got {text!r}")
    return task, Path(store)


def _tasks(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the tasks that the flags name, in turn."""
    task = arguments.task
    if task is None:
        arguments.parser.error("name a task, e.g. robot-rl practice relocate_forward")
    if arguments.alone and arguments.reverse:
        arguments.parser.error("--alone and --reverse contradict each other; leave one out")
    if arguments.robot is not None:
        from robot_rl.practice.arm_place import reverse_on_arm

        return (task,) if arguments.alone else (task, reverse_on_arm(arguments.robot, task, arguments.reverse))
    check_task(task)
    if arguments.alone:
        return (task,)
    reverse = arguments.reverse or _reverse_of(task)
    if not reverse:
        arguments.parser.error(
            f"{task} has no reverse; name the task that leads back (--reverse TASK), or practise it alone, "
            "if it can begin again where it ended (--alone)"
        )
    check_task(reverse)
    if reverse == task:
        arguments.parser.error(f"{reverse} is no reverse of itself; --alone practises one task")
    return task, reverse


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
