"""The command line of `robot-rl`; `robot-rl --help` lists the commands. Wiring only.

Answers go to standard output (as JSON with `--json`), progress and errors to standard error. Exit codes: 0 done,
1 an error or a figure below the wanted one, 2 wrong usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import argparse
import errno
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robot_rl import __version__
from robot_rl.cli.base import add_base_commands, base_settings
from robot_rl.cli.bench import add_bench_commands
from robot_rl.cli.classifier import add_classifier_commands
from robot_rl.cli.command import (
    Reply,
    add_commands,
    add_group,
    add_parser,
    add_renamed,
    add_set_flag,
    add_settings_flags,
    flat_lines,
    given_settings,
    natural,
    positive,
    share,
)
from robot_rl.cli.completion import SHELLS, completion
from robot_rl.cli.data import add_data_commands
from robot_rl.cli.evaluate import add_eval_command, exit_code
from robot_rl.cli.label import add_label_commands
from robot_rl.cli.lineage import OneStore, add_lineage_flags, check_lineage_flags, fork, fork_source, initial_parts
from robot_rl.cli.operator import (
    add_devices_command,
    add_operator_flags,
    add_robot_flag,
    check_robot_named,
    operator_options,
)
from robot_rl.cli.parser import CommandParser
from robot_rl.cli.summary_text import summary_lines
from robot_rl.env.registry import check_task, environment_names, family_names, task_names
from robot_rl.errors import InterruptedRunError, PluginError, RobotRLError
from robot_rl.system.logs import show_logs
from robot_rl.system.printable import one_line, printable, printable_error, printable_json
from robot_rl.system.process import one_thread

logger = logging.getLogger(__name__)
_CURES = dict.fromkeys((errno.ENAMETOOLONG, errno.ELOOP), "check the path") | {errno.EACCES: "have its owner permit it"}
"""Cures of what the operating system finds wrong with a path as such."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `robot-rl`; returns the exit code."""
    show_logs()
    arguments, unknown = command_line().parse_known_args(argv)
    if unknown:
        arguments.parser.refuse_unknown(unknown)
    try:
        code: int = arguments.command(arguments)
        sys.stdout.flush()
    except InterruptedRunError as error:
        print(f"robot-rl: {printable_error(str(error))}", file=sys.stderr)
        return 130
    except RobotRLError as error:
        print(f"robot-rl: {printable_error(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("robot-rl: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the answer, e.g. `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in _CURES or error.filename is None:
            raise
        print(f"robot-rl: {one_line(str(error.filename))}: {error.strerror}; {_CURES[error.errno]}", file=sys.stderr)
        return 1
    return code


def command_line() -> CommandParser:
    """Return the parser of all commands, those of other packages too."""
    parser = CommandParser(
        prog="robot-rl",
        description="Teach a robot arm a manipulation skill.",
        example="robot-rl train reach --out runs/first",
        page="README.md",
    )
    parser.add_argument("--version", action="version", version=f"robot-rl {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    _command(
        commands,
        "tasks",
        _tasks,
        "list the tasks that are installed",
        example="robot-rl tasks",
        page="docs/environments.md",
    )

    add_devices_command(_reply_command, commands)

    demo = _command(
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
    _calibration_flag(demo)
    demo.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory of the new episode store")
    add_robot_flag(demo)
    add_operator_flags(demo)

    train = _command(
        commands,
        "train",
        _train,
        "the main job: demonstrate, learn with interventions, evaluate",
        example="robot-rl train peg_insert --seed 1 --out runs/one",
        page="README.md",
    )
    train.add_argument("task", nargs="?", metavar="TASK", help="name of the task (default: peg_insert)")
    train.add_argument("--obs", choices=("state", "pixels"), help="what the policy learns from (default: state)")
    train.add_argument(
        "--realtime",
        action="store_true",
        help="simulate at the pace of the wall clock; the learner gets a process of its own",
    )
    add_settings_flags(train)
    train.add_argument("--list-settings", action="store_true", help="print every setting with its default, and exit")
    train.add_argument("--out", type=Path, metavar="DIR", help="run directory (default: runs/<task>-seed<seed>-<time>)")
    train.add_argument("--resume", action="store_true", help="continue the run in --out; its own config is the default")
    train.add_argument("--seed", type=natural, metavar="N", help="everything random follows from it (default: 0)")
    train.add_argument("--steps", type=natural, metavar="N", help="online env steps, interventions included")
    train.add_argument("--device", choices=("cpu", "cuda"), help="where the learner computes (default: cpu)")
    train.add_argument("--episodes", type=positive, metavar="N", help="held-out evaluation episodes at the end")
    train.add_argument(
        "--min-success", type=share, default=0.0, metavar="RATE", help="exit with 1 if the success rate is below this"
    )
    _calibration_flag(train)
    train.add_argument(
        "--demos", type=Path, action=OneStore, metavar="STORE", help="begin with these demonstrations, all of them"
    )
    train.add_argument(
        "--base",
        metavar="KIND[:PATH]",
        help="correct this base policy, e.g. chunk, run:runs/one, server:ws://gpu:8000; see docs/base_policies.md",
    )
    train.add_argument(
        "--rewards", metavar="NAME", help="of `label apply`, what these are worth, instead of as recorded"
    )
    add_robot_flag(train)
    add_lineage_flags(train)
    add_operator_flags(train)

    add_eval_command(_reply_command, commands)
    add_base_commands(commands, _reply_command)

    inspect = _command(
        commands,
        "inspect",
        _inspect,
        "show what is in a run directory or an episode store",
        example="robot-rl inspect runs/one",
        page="docs/data.md",
    )
    inspect.add_argument("path", type=Path, metavar="PATH", help="run directory, or directory of an episode store")

    data = add_group(commands, "data", "look at, check, exchange and rearrange recorded episodes", page="docs/data.md")
    add_data_commands(data, _reply_command)

    text = "have a vision-language model label recorded episodes, and find out how far to trust it"
    add_label_commands(add_group(commands, "label", text, page="docs/rewards.md"), _reply_command)

    text = "a classifier that detects in frames whether the task is done: record, train, and report how far to trust it"
    add_classifier_commands(add_group(commands, "classifier", text, page="docs/classifier.md"), _reply_command)
    add_renamed(parser, commands, "reward", "classifier")

    text = "time a part against what this machine can do, or train on a suite of tasks"
    add_bench_commands(add_group(commands, "bench", text, page="docs/benchmarks.md"), _reply_command)

    text = "print the script with which a shell completes commands, options and names of tasks"
    shell = _command(
        commands,
        "completion",
        _completion,
        text,
        example='eval "$(robot-rl completion bash)"',
        page="README.md",
    )
    shell.add_argument("shell", metavar="SHELL", choices=SHELLS, help=f"one of: {', '.join(SHELLS)}")

    add_commands(commands, _reply_command)
    return parser


def _command(
    commands: Any,
    name: str,
    command: Callable[[argparse.Namespace], int],
    text: str,
    /,
    *,
    example: str = "",
    page: str = "",
) -> CommandParser:
    parser = add_parser(commands, name, text, example=example, page=page)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.set_defaults(command=command, parser=parser)
    return parser


def _reply_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], Reply],
    text: str,
    /,
    *,
    example: str = "",
    page: str = "",
) -> CommandParser:
    def command(arguments: argparse.Namespace) -> int:
        reply = run(arguments)
        _answer(arguments, reply.answer, reply.lines)
        return reply.code

    return _command(commands, name, command, text, example=example, page=page)


def _calibration_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--calibration",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="a result of `robot-rl calibrate` that holds (of camera NAME); recorded, others are refused; repeatable",
    )


# --------------------------------------------------------------------- commands


def _tasks(arguments: argparse.Namespace) -> int:
    from robot_rl.env.registry import make_environment
    from robot_rl.system.sister_packages import collisions

    for collision in collisions():
        logger.warning("%s", collision)
    rows = []
    for name in (*task_names(), *environment_names()):
        try:
            env = make_environment(name)
        except PluginError as error:  # the others can be done all the same
            logger.warning("%s", error)
            continue
        spec = env.environment_spec
        env.close()
        rows.append(
            {"name": name, "instruction": spec.instruction, "max_steps": spec.max_steps, "cameras": spec.cameras}
        )
    parts = [(str(row["name"]), row["instruction"]) for row in rows]
    parts += [(f"{family}:...", f"any environment of {family}: docs/environments.md") for family in family_names()]
    width = max(len(name) for name, _ in parts)
    lines = [f"{name:<{width}}  {text}" for name, text in parts]
    _answer(arguments, rows, lines)
    return 0


def _demo(arguments: argparse.Namespace) -> int:
    robot = None
    if arguments.robot is None:
        check_task(arguments.task)
    else:
        from robot_rl.cell.robot_file import read_robot_file

        robot = read_robot_file(arguments.robot.expanduser(), arguments.task)
    operator, shared = operator_options(arguments), {"episodes": arguments.episodes, "seed": arguments.seed}
    from robot_rl.config.load import load_config
    from robot_rl.run.deployment import Deployment, workcell_options
    from robot_rl.run.directory.calibrations import Calibrations, read_record

    told = [f"task={arguments.task}", f"observations={arguments.obs}", *arguments.set]
    place = None
    if robot is not None:
        from robot_rl.cell.robot_place import operator_of, robot_deployment

        operator, place = operator_of(robot, operator), robot_deployment(robot)
    if robot is not None and robot.cell.judge == "person" and operator is None:
        arguments.parser.error("--robot needs a person who demonstrates: --console, --teleop DEVICE, or `devices`")
    observed = workcell_options((place or Deployment()).with_cameras(load_config(None, told)))
    observed = replace(observed, cameras=tuple(dict.fromkeys((*observed.cameras, *arguments.camera))))
    calibrations = Calibrations([read_record(entry) for entry in arguments.calibration], cameras=observed.cameras)
    shared["calibrations"] = calibrations
    if operator is None:
        from robot_rl.run.demonstrate import demonstrate

        answer = demonstrate(arguments.task, arguments.out, observed=observed, deployment=place, **shared)
    else:
        from robot_rl.hil.demo_session import record_human_demonstrations

        observed.intervention.refuse("here a person demonstrates")
        if place is not None:
            shared["make"] = place.workcell
        answer = record_human_demonstrations(
            arguments.task, arguments.out, observed=observed, operator=operator, **shared
        )
    _answer(arguments, answer, flat_lines(answer))
    return 0


def _train(arguments: argparse.Namespace) -> int:
    if arguments.list_settings:
        from robot_rl.config.describe import list_keys

        keys = list_keys()
        _answer(arguments, [key.row() for key in keys], [key.text() for key in keys])
        return 0
    from robot_rl.config.load import load_config, load_run_config
    from robot_rl.run.directory.calibrations import whole_path
    from robot_rl.run.directory.run_directory import RunDirectory, default_run_path
    from robot_rl.system.atomic_file import to_json

    flags = {
        "task": "task",
        "obs": "observations",
        "seed": "seed",
        "steps": "env_steps",
        "device": "device",
        "episodes": "evaluation.episodes",
    }
    overrides = [*base_settings(arguments.base), *given_settings(arguments, flags)]
    if arguments.calibration:
        overrides.append(f"calibrations={to_json([whole_path(entry) for entry in arguments.calibration])}")
    operator = operator_options(arguments)
    if (
        arguments.realtime or operator is not None or arguments.robot is not None
    ):  # nobody can lead an arm faster than real time
        overrides += ["realtime=true", "processes=2"]
    check_lineage_flags(arguments)
    if arguments.rewards is not None and arguments.demos is None:
        arguments.parser.error("--rewards needs --demos STORE, the store whose rewards are meant")
    if arguments.demos is not None:
        from robot_rl.data.store.operator_labels import rewarded_episodes
        from robot_rl.data.store.store import EpisodeStore

        with EpisodeStore.open(arguments.demos) as demos:
            overrides.append(f"demonstrations={len(rewarded_episodes(demos, arguments.rewards))}")
    initial, source = None, None
    if arguments.resume:
        if arguments.out is None:
            arguments.parser.error("--resume needs --out DIR, the directory of the run to continue")
        RunDirectory.read_config(arguments.out)  # its error names what is wrong, if there is no run
        if arguments.robot is None:
            check_robot_named(arguments.out)
        config = load_run_config(arguments.config or arguments.out / "config.yaml", overrides)
    elif arguments.fork is not None:
        source = fork_source(arguments)
        config = load_run_config(arguments.config or source.path / "config.yaml", overrides)
    else:
        initial = initial_parts(arguments, overrides)
        config = load_config(arguments.config, overrides)
    path = arguments.out or default_run_path(config.task, config.seed)
    place = None
    if arguments.robot is None:
        check_task(config.task)
    else:
        from robot_rl.cell.robot_file import read_robot_file
        from robot_rl.cell.robot_place import check_judged, no_demonstrations, operator_of, robot_deployment

        robot = read_robot_file(arguments.robot.expanduser(), config.task)
        operator = operator_of(robot, operator)
        check_judged(robot, operator, config.reward.kind)
        recorded = arguments.demos is not None or arguments.resume or source is not None or initial is not None
        if config.demonstrations and not recorded and robot.cell.judge == "person":
            raise no_demonstrations(config.task, arguments.robot)
        place = robot_deployment(robot)
    if not arguments.resume:
        RunDirectory.check_free(path)
    one_thread()  # and whatever takes seconds to import, after what a user may have got wrong
    from robot_rl.run.train import train

    deployment = place
    if operator is not None:
        from robot_rl.hil.local_operator import local_deployment

        deployment = local_deployment(operator, path, config.env_steps, place)
    options = {"demos": arguments.demos, "rewards": arguments.rewards, "deployment": deployment, "initial": initial}
    if source is not None:
        fork(source, config, path)
    summary = train(config, path, resume=arguments.resume or source is not None, **options)
    _answer(arguments, summary, [*summary_lines(summary), f"run directory: {path}"])
    return exit_code(summary["success_rate"], arguments.min_success)


def _inspect(arguments: argparse.Namespace) -> int:
    from robot_rl.cli.inspect import inspect, inspect_lines

    answer = inspect(arguments.path)
    _answer(arguments, answer, inspect_lines(answer))
    return 0


def _completion(arguments: argparse.Namespace) -> int:
    families = (f"{family}:" for family in family_names())
    names = {"TASK": (*task_names(), *environment_names(), *families)}
    script = completion(arguments.shell, command_line(), names)
    _answer(arguments, script, [script.rstrip()])
    return 0


# ---------------------------------------------------------------------- helpers


def _answer(arguments: argparse.Namespace, answer: Any, lines: Sequence[str]) -> None:
    """Print the answer, for a program or for a person."""
    if arguments.json:
        from robot_rl.system.atomic_file import to_json  # it knows numpy's arrays, and other commands start faster

        text = printable_json(to_json(answer))
    else:
        text = printable("\n".join(lines))
    print(text, end="\n" if text else "")
